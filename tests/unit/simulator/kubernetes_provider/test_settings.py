"""A provider's configuration is heeded, or refused with the fix."""

from holdfast.simulator.kubernetes_provider.settings import Settings, unheeded


def test_flags_are_read_in_each_form_the_engine_gives_them() -> None:
    for value in (True, "true"):
        assert Settings.of({"upsertExistingObjects": value}).upserts, f"{value!r} is not understood"
    assert not Settings.of({"upsertExistingObjects": "false"}).upserts, "the word false is not true"


def test_an_empty_configuration_has_the_plugins_defaults() -> None:
    assert Settings.of({}) == Settings(), "a program that sets nothing would behave otherwise than for real"


def test_what_cannot_be_rehearsed_is_named_with_the_mend() -> None:
    found = unheeded({"enableServerSideApply": "false", "renderYamlToDirectory": "out", "namespace": "a"})
    assert set(found) == {"enableServerSideApply", "renderYamlToDirectory"}, "the wrong settings are refused"
    assert "leave it unset" in found["renderYamlToDirectory"], "the fix is missing"


def test_a_plain_configuration_is_taken() -> None:
    assert unheeded({"kubeconfig": "x", "enableServerSideApply": "true"}) == {}, (
        "every stack would be refused"
    )
