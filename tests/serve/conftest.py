import pytest
from fake_session import serving


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("serve") / "session") as found:
        yield found


@pytest.fixture
def served(running):
    """A server over a session without queries; one server for all tests, as its start and its end take time."""
    running.session.__init__()
    with running.client() as running.http:
        yield running
