//! How the library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // libssl, which the server uses as well, keeps pointers to functions of this library (which free what hangs on a
    // session). So the library stays in the process when the server closes it.
    println!("cargo:rustc-link-arg-cdylib=-Wl,-z,nodelete");
}
