# The fallback controller: two packages of this repository, and what is pinned by hash in fallback/requirements.lock.
#   docker build -t ghcr.io/holdfast-dev/fallback-controller:0.1.0 .
# Tag and digest change together: `docker buildx imagetools inspect python:3.13-slim`. It is the index of all platforms.
ARG PYTHON=docker.io/library/python:3.13-slim@sha256:6771159cd4fa5d9bba1258caf0b82e6b73458c694d178ad97c5e925c2d0e1a91

FROM ${PYTHON} AS packages
COPY fallback/requirements.lock /requirements.lock
# Wheels alone: nothing of theirs is run to install them.
RUN python -m pip install --no-cache-dir --disable-pip-version-check --root-user-action ignore \
    --require-hashes --no-deps --only-binary :all: --target /packages -r /requirements.lock

FROM ${PYTHON}
LABEL org.opencontainers.image.source="https://github.com/holdfast-dev/holdfast" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=packages /packages /packages
COPY LICENSE /app/LICENSE
COPY holdfast/__init__.py /app/holdfast/__init__.py
COPY scheduling /app/holdfast/scheduling
COPY fallback /app/holdfast/fallback
ENV PYTHONPATH=/app:/packages PYTHONUNBUFFERED=1
# Its file system is read-only where it runs.
RUN python -m compileall -q -j 0 /app /packages
USER 65532:65532
WORKDIR /app
EXPOSE 8080
ENTRYPOINT ["python", "-m", "holdfast.fallback"]
