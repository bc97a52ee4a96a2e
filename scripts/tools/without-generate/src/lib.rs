//! The interface of cargo-generate that cargo-leptos uses for `cargo leptos new`, which fails here.

#[derive(Default)]
pub struct TemplatePath {
    pub git: Option<String>,
    pub branch: Option<String>,
    pub tag: Option<String>,
    pub path: Option<String>,
}

#[derive(Default)]
pub struct GenerateArgs {
    pub template_path: TemplatePath,
    pub name: Option<String>,
    pub force: bool,
    pub verbose: bool,
    pub init: bool,
}

pub fn generate(_: GenerateArgs) -> anyhow::Result<()> {
    anyhow::bail!("this build of cargo-leptos creates no projects")
}
