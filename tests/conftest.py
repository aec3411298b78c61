"""What holds for every test: no test asserts a time, not even by hypothesis's default deadline."""

from hypothesis import settings

settings.register_profile("gradnet", deadline=None)
settings.load_profile("gradnet")
