# {% if image %}
# {% include "template/tasks/image/model.py" %}
# {% else %}
# {% include "template/tasks/text/model.py" %}
# {% endif %}
