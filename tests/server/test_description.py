"""The description of the API is true: whatever it allows is answered as it says, and so is what it does not."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from server.made import app_of, make_service, make_vectors

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
_HOSTS = ("testserver", "localhost", "127.0.0.1")


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    make_vectors(folder / "v")
    app = app_of(make_service(folder / "v", folder), hosts=_HOSTS)
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)


def test_every_path_answers_as_it_is_described(described):
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) >= 15
    for operation in operations:

        @given(case=operation.as_strategy())
        @settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        def answers(case):
            case.call_and_validate(checks=CHECKS)

        answers()
