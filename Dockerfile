# The command `steadfast`, as a static binary without a system around it.
#
#     docker build --tag steadfast .
#     docker run --rm --publish 127.0.0.1:40000:40000 steadfast \
#         cluster --bind 0.0.0.0 --host 127.0.0.1 --control-port 40000
#
# Not yet run: written without a container runtime at hand.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /source
COPY . .
RUN cargo build --profile dist --locked --package steadfast-cli

FROM scratch
COPY --from=build /source/target/dist/steadfast /steadfast
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# No name: an empty system knows none.
USER 65532:65532
ENTRYPOINT ["/steadfast"]
CMD ["--help"]
