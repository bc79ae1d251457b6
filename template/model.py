# {% if image %}
# {% include "template/tasks/image/model.py" %}
# {% endif %}
# {% if text %}
# {% include "template/tasks/text/model.py" %}
# {% endif %}
# {% if table %}
# {% include "template/tasks/table/model.py" %}
# {% endif %}
# {% if blank %}
# {% include "template/tasks/blank/model.py" %}
# {% endif %}
