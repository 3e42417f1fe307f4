//! Writes the custom resource definitions: `cargo run -p spillway-api --example crds -- <directory>`.

use std::{error::Error, fs, path::Path};

use spillway_api::crds;

#[path = "../tests/yaml/mod.rs"]
mod yaml;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: crds <directory>")?;
    let directory = Path::new(&directory);
    fs::create_dir_all(directory)?;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // What is no longer defined must not stay behind.
        if path.extension().is_some_and(|extension| extension == "yaml") {
            fs::remove_file(path)?;
        }
    }
    for crd in crds::all() {
        fs::write(directory.join(crds::file_name(&crd)), yaml::print(&crd)?)?;
    }
    Ok(())
}
