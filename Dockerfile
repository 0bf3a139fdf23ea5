# The three images: docker build --target operator|sweeper|publisher -t NAME .
# Builds with BuildKit and with the builder before it. Everything installed is in requirements.lock, with its hash.
#   --build-arg BASE=IMAGE   a Linux with Python 3.11 to 3.13 and venv, e.g. a mirror of the default
ARG BASE=python:3.12-slim

FROM ${BASE} AS build
# Bytecode is trusted as it is: nobody edits a module inside an image.
ENV PYC_INVALIDATION_MODE=UNCHECKED_HASH UV_NO_CACHE=1 UV_LINK_MODE=copy
WORKDIR /src
COPY .ci/lock.py .ci/
COPY requirements.lock .
# uv and hatchling first, themselves from the lock.
RUN python3 -m venv /opt/build \
 && /opt/build/bin/python .ci/lock.py --only uv > uv.lock \
 && /opt/build/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --require-hashes -r uv.lock \
 && /opt/build/bin/uv pip install --quiet --python /opt/build --verify-hashes -c requirements.lock hatchling \
 && /opt/build/bin/uv venv --quiet --python python3 /opt/venv
COPY pyproject.toml .

FROM build AS wheel
COPY . .
# A version of the images that is not the project's own fails here.
ARG VERSION=0.1.0
RUN /opt/build/bin/python -m hatchling build -t wheel -d /dist && test -f /dist/dgdr-${VERSION}-py3-none-any.whl

# Dependencies come before our own code, so that a change of ours downloads nothing. The tests that wheels carry go.
FROM build AS operator-venv
RUN /opt/build/bin/uv pip install --quiet --python /opt/venv --verify-hashes --compile-bytecode \
    -c requirements.lock -r pyproject.toml --extra operator
COPY --from=wheel /dist /dist
RUN /opt/build/bin/uv pip install --quiet --python /opt/venv --compile-bytecode --no-deps /dist/*.whl \
 && find /opt/venv -type d -name tests -prune -exec rm -r {} + \
 && /opt/venv/bin/python -c "import dgdr_operator.main"

FROM build AS publisher-venv
RUN /opt/build/bin/uv pip install --quiet --python /opt/venv --verify-hashes --compile-bytecode \
    -c requirements.lock -r pyproject.toml --extra publisher
COPY --from=wheel /dist /dist
RUN /opt/build/bin/uv pip install --quiet --python /opt/venv --compile-bytecode --no-deps /dist/*.whl \
 && find /opt/venv -type d -name tests -prune -exec rm -r {} + \
 && /opt/venv/bin/python -c "import dgdr_publisher.service.main, pyarrow.parquet"

FROM build AS sweeper-venv
# The performance model names pyarrow and scipy and uses neither: 270 MB. The imports below would tell.
RUN printf 'pyarrow\nscipy\n' > excludes.txt \
 && /opt/build/bin/uv pip install --quiet --python /opt/venv --verify-hashes --compile-bytecode \
    -c requirements.lock --excludes excludes.txt -r pyproject.toml --extra job
COPY --from=wheel /dist /dist
RUN /opt/build/bin/uv pip install --quiet --python /opt/venv --compile-bytecode --no-deps /dist/*.whl \
 && find /opt/venv -type d -name tests -prune -exec rm -r {} + \
 && /opt/venv/bin/python -c "import dgdr_job.main.child, dgdr_job.main.client, dgdr_job.catalog.aic, moocore"

FROM ${BASE} AS runtime
ENV PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
ARG VERSION=0.1.0
LABEL org.opencontainers.image.version="${VERSION}" org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532
WORKDIR /tmp

FROM runtime AS operator
LABEL org.opencontainers.image.title="dgdr-operator" \
      org.opencontainers.image.description="Turns search requests into runs and Jobs"
COPY --from=operator-venv /opt/venv /opt/venv
ENTRYPOINT ["dgdr-operator"]

FROM runtime AS publisher
LABEL org.opencontainers.image.title="dgdr-publisher" \
      org.opencontainers.image.description="Writes what a search finds into the cluster"
COPY --from=publisher-venv /opt/venv /opt/venv
ENTRYPOINT ["dgdr-publisher"]

FROM runtime AS sweeper
LABEL org.opencontainers.image.title="dgdr-sweeper" \
      org.opencontainers.image.description="Searches the configurations of one run"
COPY --from=sweeper-venv /opt/venv /opt/venv
ENTRYPOINT ["dgdr-sweeper"]
