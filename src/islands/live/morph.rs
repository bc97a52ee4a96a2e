//! Applies the differences between two trees to the first one. Equal nodes are not touched, so focus, selection, open
//! elements and typed text are kept. The rows of a list that is in use stay in their places. A form or a button never
//! becomes that of another action.

use std::collections::HashSet;

use leptos::wasm_bindgen::JsCast;
use web_sys::{Element, HtmlTextAreaElement, Node};

/// Marks elements that scripts own: a refresh does not change them.
const KEEP: &str = "data-keep";

/// Marks elements that a refresh must not change once the user has typed into them.
const KEEP_TYPED: &str = "data-keep-typed";

/// Marks rows of a list in use that the new page does not contain.
const GONE: &str = "data-gone";

/// Lists at which the user points, in which the focus is, or with selected rows.
pub const IN_USE: &str = "tbody:is(:hover, :focus-within, :has(:checked))";

/// Dialogs that the user reads. A refresh does not change them: the user would confirm something else.
const OPEN: &str = ":popover-open";

/// One refresh.
#[derive(Default)]
pub struct Refresh {
    /// Changes lists that are in use, too.
    pub is_forced: bool,
    /// The number of new rows that were not added to lists in use.
    pub new_rows: usize,
    /// Whether the rows of a list in use have changed.
    pub has_list_changes: bool,
}

impl Refresh {
    /// Changes `old` to equal `new`.
    pub fn element(&mut self, old: &Element, new: &Element) {
        let is_open = || old.matches(OPEN).unwrap_or(false);
        if old.is_equal_node(Some(new)) || old.has_attribute(KEEP) || is_typed(old) || is_open() {
            return;
        }
        attributes(old, new);
        if !self.is_forced && old.matches(IN_USE).unwrap_or(false) {
            self.update_in_place(old, new);
        } else {
            self.children(old, new);
        }
    }
}

fn is_typed(old: &Element) -> bool {
    let text = old.has_attribute(KEEP_TYPED);
    let text = text.then(|| old.query_selector("textarea").ok().flatten());
    let text = text.flatten().and_then(|text| text.dyn_into().ok());
    text.is_some_and(|text: HtmlTextAreaElement| {
        text.default_value()
            .is_ok_and(|given| given != text.value())
    })
}

fn attributes(old: &Element, new: &Element) {
    // What the user has opened stays open, and what the user has closed stays closed.
    let is_ours = |name: &String| name != "open";
    for name in names(old).into_iter().filter(is_ours) {
        if !new.has_attribute(&name) {
            old.remove_attribute(&name).ok();
        }
    }
    for name in names(new).into_iter().filter(is_ours) {
        let value = new.get_attribute(&name).unwrap_or_default();
        if old.get_attribute(&name).as_deref() != Some(&value) {
            old.set_attribute(&name, &value).ok();
        }
    }
}

fn names(element: &Element) -> Vec<String> {
    element
        .get_attribute_names()
        .iter()
        .filter_map(|name| name.as_string())
        .collect()
}

impl Refresh {
    /// Changes the rows of a list in place: adds, removes and moves none.
    fn update_in_place(&mut self, old: &Element, new: &Element) {
        let (ours, wanted) = (list(old), list(new));
        let keys = |rows: &[Node]| -> Vec<String> { rows.iter().filter_map(key).collect() };
        let our_keys = keys(&ours);
        let wanted_keys = keys(&wanted);
        self.has_list_changes |= our_keys != wanted_keys;
        let is_new = |key: &&String| !our_keys.contains(key);
        self.new_rows += wanted_keys.iter().filter(is_new).count();
        for row in ours {
            let same = |node: &&Node| key(&row).is_some() && key(node) == key(&row);
            match (wanted.iter().find(same), row.dyn_ref::<Element>()) {
                (Some(node), _) => self.one(&row, node),
                (None, Some(row)) => drop(row.set_attribute(GONE, "")),
                (None, None) => {}
            }
        }
    }

    /// Matches rows by key, and other nodes by position. After an element that was added or removed, matches nodes by
    /// kind ([`skip_removed`]). Removes nodes first, so that the others need not move: a moved node loses its focus.
    fn children(&mut self, old: &Element, new: &Element) {
        let wanted: Vec<Node> = list(new);
        let keys: HashSet<String> = wanted.iter().filter_map(key).collect();
        for child in list(old) {
            if key(&child).is_some_and(|key| !keys.contains(&key)) {
                old.remove_child(&child).ok();
            }
        }
        let mut at = old.first_child();
        for (index, node) in wanted.iter().enumerate() {
            let rest = wanted.get(index + 1..).unwrap_or_default();
            at = skip_removed(old, at, node, rest);
            let place = at.clone();
            let found = match (key(node), &place) {
                (Some(wanted), _) => {
                    from(place.clone()).find(|child| key(child).as_ref() == Some(&wanted))
                }
                (None, Some(place))
                    if key(place).is_none() && place.node_name() == node.node_name() =>
                {
                    Some(place.clone())
                }
                (None, _) => None,
            };
            match found {
                Some(found) => {
                    if place.as_ref() == Some(&found) {
                        at = found.next_sibling();
                    } else {
                        old.insert_before(&found, place.as_ref()).ok();
                    }
                    self.one(&found, node);
                }
                None => {
                    old.insert_before(node, place.as_ref()).ok();
                }
            }
        }
        for surplus in from(at).collect::<Vec<_>>() {
            old.remove_child(&surplus).ok();
        }
    }

    fn one(&mut self, old: &Node, new: &Node) {
        if is_other_action(old, new) {
            if let Some(parent) = old.parent_node() {
                parent.replace_child(new, old).ok();
            }
            return;
        }
        match (old.dyn_ref::<Element>(), new.dyn_ref::<Element>()) {
            (Some(old), Some(new)) => self.element(old, new),
            _ => {
                let value = new.node_value();
                if old.node_value() != value {
                    old.set_node_value(value.as_deref());
                }
            }
        }
    }
}

/// Removes the nodes before the first one with the key of `node`, or of the same kind, from `at` on, if none of them is
/// wanted later: they have been removed from the page. Returns the node that is now at this place.
fn skip_removed(parent: &Element, at: Option<Node>, node: &Node, rest: &[Node]) -> Option<Node> {
    let wanted = key(node);
    let is_right = |at: &Node| key(at) == wanted && at.node_name() == node.node_name();
    if at.as_ref().is_some_and(is_right) {
        return at;
    }
    let mut removed = Vec::new();
    for other in from(at.clone()) {
        if key(&other) == wanted && (wanted.is_some() || kind(&other) == kind(node)) {
            for node in removed {
                parent.remove_child(&node).ok();
            }
            return Some(other);
        }
        let is_element = other.dyn_ref::<Element>().is_some();
        if is_element && (key(&other).is_some() || rest.iter().any(|it| kind(it) == kind(&other))) {
            break;
        }
        removed.push(other);
    }
    at
}

/// The name of a node, and its class, if it is an element.
fn kind(node: &Node) -> (String, Option<String>) {
    let element = node.dyn_ref::<Element>();
    let class = element.and_then(|element| element.get_attribute("class"));
    (node.node_name(), class)
}

/// Whether these are forms or buttons of different actions. One must not become the other: a button that has the focus
/// would then do something else than the user means.
fn is_other_action(old: &Node, new: &Node) -> bool {
    action(old) != action(new)
}

/// The attributes that determine what a form or a button does; none for other nodes.
fn action(node: &Node) -> Vec<Option<String>> {
    let names: &[&str] = match node.node_name().as_str() {
        "FORM" => &["action"],
        "BUTTON" => &["formaction", "form", "name", "value", "popovertarget"],
        _ => &[],
    };
    let element = node.dyn_ref::<Element>();
    let values = names.iter().map(|name| element?.get_attribute(name));
    values.collect()
}

/// The key of a node among its siblings.
fn key(node: &Node) -> Option<String> {
    let element = node.dyn_ref::<Element>()?;
    element
        .get_attribute("data-key")
        .or_else(|| element.get_attribute("id"))
}

fn list(parent: &Element) -> Vec<Node> {
    from(parent.first_child()).collect()
}

fn from(first: Option<Node>) -> impl Iterator<Item = Node> {
    std::iter::successors(first, Node::next_sibling)
}
