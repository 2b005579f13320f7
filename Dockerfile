# The book, built from nothing: docker build -t rankrouting . && docker run --rm -p 8000:8000 rankrouting
FROM python:3.11.11-slim-bookworm

# The browser prints the PDF; make runs the set-up.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends chromium=* fonts-dejavu-core=* make=* \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home reader
USER reader
WORKDIR /home/reader/rankrouting

# The environment alone first: it is made again only when the lock changes.
COPY --chown=reader pyproject.toml requirements.lock Makefile README.md LICENSE ./
COPY --chown=reader tools tools
COPY --chown=reader lib lib
RUN make venv INSTALLER=pip

COPY --chown=reader . .
ARG PROFILE=default
ENV PROFILE=${PROFILE}
RUN make pdf PROFILE="${PROFILE}"

EXPOSE 8000
CMD ["sh", "-c", "cd _build/$PROFILE/html && exec ../../../.venv/bin/python -m http.server 8000"]
