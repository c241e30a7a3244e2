# The mock carrier as an image of one static file:
#
#	docker build -t mockcarrier .
#	docker run --rm -p 127.0.0.1:52188:52188 mockcarrier
#
# The admin API and its page are not there, since a container's address is not
# loopback, until they are asked for:
#
#	docker run --rm -p 127.0.0.1:52188:52188 -e CARRIER_ADMIN=on mockcarrier
#
# Keep the port on 127.0.0.1 then: the admin API asks for no credentials. To keep
# the state, mount a folder that user 65532 may write:
#
#	docker run --rm -p 127.0.0.1:52188:52188 -v carrier:/data -e CARRIER_STATE=/data/state.json mockcarrier

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY carrier carrier
COPY mockcarrier mockcarrier
COPY openapi openapi
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/mockcarrier ./mockcarrier/cmd/mockcarrier \
    && mkdir -p /out/data

FROM scratch
COPY --from=build /out/mockcarrier /mockcarrier
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENV CARRIER_ADDR=0.0.0.0:52188 CARRIER_LOG=json
EXPOSE 52188
STOPSIGNAL SIGTERM
ENTRYPOINT ["/mockcarrier"]
