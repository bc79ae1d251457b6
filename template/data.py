# {% if image %}
# {% include "template/tasks/image/data.py" %}
# {% else %}
# {% include "template/tasks/text/data.py" %}
# {% endif %}
