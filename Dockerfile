# The image with all the binaries, for those who have Docker: `docker build -t spillway/spillway:0.1.0 .`
# `make image` builds the same one without it. The rootfs has the binaries, the libraries they need and nothing else.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin virtual-kubelet --bin shadow-pod --bin peering --bin admission --bin testbed \
    && target/release/testbed image rootfs /rootfs virtual-kubelet shadow-pod peering admission

FROM scratch
COPY --from=build /rootfs /
USER 65532:65532
