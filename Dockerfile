# docker build -t rewright . && docker run --rm -v "$PWD:/work" rewright refine model.py:sequential model.py:parallel --mesh tp=8
FROM python:3.12-slim
# For the kernels of `rewright optimize`.
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/rewright
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN PIP_CONSTRAINT=constraints.txt pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu '.[torch,models]'
RUN useradd --create-home user
USER user
WORKDIR /work
ENTRYPOINT ["rewright"]
CMD ["--help"]
