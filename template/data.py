# {% if image %}
# {% include "template/tasks/image/data.py" %}
# {% endif %}
# {% if text %}
# {% include "template/tasks/text/data.py" %}
# {% endif %}
# {% if table %}
# {% include "template/tasks/table/data.py" %}
# {% endif %}
# {% if blank %}
# {% include "template/tasks/blank/data.py" %}
# {% endif %}
