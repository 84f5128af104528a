"""nbgrader's settings for everybody on the machine: goes to /etc/jupyter/nbgrader_config.py."""

# Names and titles are text on all pages of nbgrader.
import tfviz_course.served  # noqa: F401

c = get_config()  # type: ignore[name-defined]  # given by Jupyter

c.CourseDirectory.course_id = "attention"  # the name that you give to `tfviz-course new`
c.Exchange.root = "/srv/nbgrader/exchange"

# Work is taken only from the account that handed it in, and only plain files of that account.
c.ExchangeFactory.collect = "tfviz_course.collect.OwnWork"
