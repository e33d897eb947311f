# An image of your own with the fallback controller, for `fallback.image`. A stack needs none: by default it carries the
# program itself. The image has two folders of this repository, and the packages that components/pulumi_holdfast/controller/requirements.lock pins by hash.
#   docker build -t registry.example.com/fallback-controller:0.1.0 .
# The base is the image that stacks run by default (components/pulumi_holdfast/config/versions.py).
ARG PYTHON=docker.io/library/python:3.13.14-slim-trixie@sha256:6771159cd4fa5d9bba1258caf0b82e6b73458c694d178ad97c5e925c2d0e1a91

FROM ${PYTHON} AS packages
COPY components/pulumi_holdfast/controller/requirements.lock /requirements.lock
# Only wheels: their installation runs no code of theirs.
RUN python -m pip install --no-cache-dir --disable-pip-version-check --root-user-action ignore \
    --require-hashes --no-deps --only-binary :all: --target /packages -r /requirements.lock

FROM ${PYTHON}
LABEL org.opencontainers.image.licenses="Apache-2.0"
COPY --from=packages /packages /packages
COPY LICENSE /app/LICENSE
COPY components/pulumi_holdfast/__init__.py /app/pulumi_holdfast/__init__.py
COPY components/pulumi_holdfast/ladder /app/pulumi_holdfast/ladder
COPY components/pulumi_holdfast/controller /app/pulumi_holdfast/controller
ENV PYTHONPATH=/app:/packages PYTHONUNBUFFERED=1
# The container's file system is read-only, so the bytecode is compiled here.
RUN python -m compileall -q -j 0 /app /packages
USER 65532:65532
WORKDIR /app
EXPOSE 8080
ENTRYPOINT ["python", "-m", "pulumi_holdfast.controller"]
