#!/bin/sh
# Compiles a crate of the package with Clippy's driver, which also lints: for RUSTC_WORKSPACE_WRAPPER, see the Makefile.
# The large test programs are not optimized: that would take three times as long, and they wait for the server anyway.
case " $* " in
*" --crate-name http "* | *" --crate-name engine "*) exec "$CLIPPY_DRIVER" "$@" -C opt-level=0 ;;
*) exec "$CLIPPY_DRIVER" "$@" ;;
esac
