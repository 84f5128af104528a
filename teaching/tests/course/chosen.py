"""Which tests of teaching run where not everything is proven: one exemplar of each kind.

`TFVIZ_ALL` is set where all run (`course.classroom.EVERYTHING`). Without it, a file that stands in
`EXEMPLARS` runs these tests, and the others run whole but for those in `LEFT_OUT`. What is left out
is slow and of a kind that another test proves, too: the same with other answers, other signals, in
a browser, or through another program.
"""

from __future__ import annotations

import pytest
from course.classroom import EVERYTHING

EXEMPLARS = {
    # one real class; then, with a judge that takes no time: the store, the gradebook, a kill
    "course/test_autograde": (
        "test_everybody_gets_points",
        "test_remarks",
        "test_only_what_changed_is_judged_anew",
        "test_no_score_outlives_its_answer[garbage]",
        "test_one_bad_submission_changes_no_other",
        "test_a_full_disk_names_the_path",
        "test_no_sandbox",
        "test_what_cannot_be_graded",
    ),
    # what nbgrader shows of the same class, without a server and a browser
    "course/test_plugin": (
        "test_a_verdict_on_other_answers_is_not_used",
        "test_what_the_judge_keeps_of_outputs_is_harmless",
        "test_a_score_comes_from_the_verdict_alone",
        "test_markdown_does_nothing",
        "test_an_answer_has_no_looks_or_names_of_the_page",
        "test_signs_that_turn_the_direction_are_written_out",
    ),
    # the words of the commands; a walk from the first to the last is the README's (test_guide)
    "course/test_command": (
        "test_every_command_is_in_the_help",
        "test_help_explains_every_option",
        "test_the_examples_can_be_read",
        "test_errors_are_one_line",
        "test_wrong_use",
        "test_an_error_of_many_lines_is_told_in_one",
        "test_check",
    ),
    # one wall of each kind: files, network, users, time, memory, the line, what is said without it
    "course/test_sandbox": (
        "test_it_sees_no_network",
        "test_it_reads_neither_the_course_nor_the_chapters_nor_a_home",
        "test_it_has_python_the_library_and_nothing_of_the_environment",
        "test_it_writes_only_in_a_small_tmp",
        "test_it_is_nobody_and_cannot_become_somebody",
        "test_it_sees_only_its_own_processes",
        "test_output_is_kept_up_to_a_length",
        "test_outputs_are_text_and_pictures_only",
        "test_one_process_gets_no_more_memory_than_it_may",
        "test_names_stand_where_the_watch_reads",
        "test_each_look_is_seen",
        "test_every_process_of_the_sandbox_is_refused_the_same_calls",
        "test_a_missing_bubblewrap_is_said_with_its_remedy",
        "test_another_system_is_said_with_its_remedy",
    ),
    # one submission with an answer of each kind, and what a judge says where there is no sandbox
    "course/test_judge": (
        "test_an_answer_gets_its_verdict",
        "test_every_cell_of_tests_has_a_verdict",
        "test_hidden_inputs_appear_nowhere_that_a_student_sees",
        "test_the_outputs_of_answers_are_kept",
        "test_nothing_changes_here",
        "test_the_seed_depends_on_all_it_should",
        "test_no_sandbox_is_an_error_and_not_a_verdict",
        "test_a_source_that_does_not_run_is_named",
    ),
    # every template of nbgrader's, without a server and a browser
    "course/test_served": (
        "test_every_page_of_formgrader_escapes_every_value",
        "test_the_head_of_a_submission_escapes_every_value",
        "test_no_template_and_no_script_of_nbgraders_has_another_door",
    ),
    # the sums, one table, one page; plots of all sizes and browsers are of the same kind
    "course/test_report": (
        "test_students_exercises_and_sums",
        "test_the_sums_are_those_of_nbgrader",
        "test_how_late_is_said_in_days_and_hours",
        "test_plain_text_is_bounded",
        "test_numbers",
        "test_students_csv",
        "test_no_spreadsheet_takes_text_for_a_formula",
        "test_the_page_says_who_what_and_what_waits",
    ),
    # one zip of files, one of folders; the others are the same with other names
    "course/test_platforms": (
        "test_each_platforms_zip_is_collected[canvas, by number-packed by a Mac]",
        "test_each_platforms_zip_is_collected[gradescope-as downloaded]",
        "test_the_examples_of_the_table_are_what_its_patterns_take",
    ),
    # what needs no class and no container
    "course/test_gradescope": (
        "test_whose_a_submission_is",
        "test_no_assignment_no_zip",
    ),
}
# of the other files all run, but for these
LEFT_OUT = {
    "course/test_assignment": ("test_lazy_answers_are_tried_where_they_once_passed",),
    # the walks through the commands of the pages
    "course/test_guide": (
        "test_the_guide",
        "test_the_readme",
        "test_the_exercises_to_copy_are_right",
    ),
    # a class on a whole machine, which is for `make hub-test`
    "hub/test_hub": (
        "test_a_class_on_one_machine",
        "test_one_account_for_all_as_on_kubernetes",
    ),
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not an exemplar, unless it is asked for by its name."""
    if EVERYTHING or any("::" in word for word in config.args):
        return
    left_out = [item for item in items if not _runs(item.nodeid)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def _runs(nodeid: str) -> bool:
    file, _, test = nodeid.partition("::")
    name = file.removesuffix(".py").removeprefix("teaching/tests/")
    names = {test, test.partition("[")[0]}
    return names.isdisjoint(LEFT_OUT.get(name, ())) and (
        name not in EXEMPLARS or not names.isdisjoint(EXEMPLARS[name])
    )
