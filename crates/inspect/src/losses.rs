//! Computes how many members a cluster may lose at the same moment. Pure.

use serde::Serialize;
use trireme_agent::Component;

use crate::node::Node;

/// A member's part in the quorum.
#[derive(Clone, Debug)]
pub(crate) struct Voter {
    pub(crate) name: String,
    /// None if the member was not asked.
    pub(crate) weight: Option<u64>,
}

/// The voters of a view: nodes that answered, the names of members that did not, and the number of members without an
/// address for clients.
pub(crate) fn voters<'a>(
    nodes: impl Iterator<Item = &'a Node>,
    silent: impl Iterator<Item = String>,
    without_address: usize,
) -> Vec<Voter> {
    // A joiner has no vote until it is Joined.
    let of_nodes = nodes.filter(|node| node.state() >= 2).map(|node| Voter {
        name: node.name().to_owned(),
        weight: node.weight(),
    });
    let without = (0..without_address).map(|_| "a member without address".to_owned());
    let others = silent.chain(without);
    of_nodes
        .chain(others.map(|name| Voter { name, weight: None }))
        .collect()
}

/// The number of members that the cluster may lose at once. The rest then still commits, and has every acknowledged
/// commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// The cluster survives the loss of any members, up to this number.
    pub survives: usize,
    /// The reason why one more loss is too much.
    pub why: String,
}

/// `total`: `wsrep_cluster_weight`, the sum over all voters.
pub(crate) fn losses(component: Component, total: u64, mut voters: Vec<Voter>) -> Losses {
    let none = |why: &str| Losses {
        survives: 0,
        why: why.to_owned(),
    };
    match component {
        Component::Left => return none("the node has left the cluster: ask another one"),
        Component::Primary if total > 0 => {}
        Component::Primary | Component::NonPrimary => {
            return none(
                "the node has no majority now: nothing can be committed here until one is back",
            );
        }
    }
    assign(total, &mut voters);
    let mut weights: Vec<(u64, &str)> = voters
        .iter()
        .map(|voter| (voter.weight.unwrap_or(0), voter.name.as_str()))
        .collect();
    weights.sort_by(|a, b| b.cmp(a));
    let majority = total / 2 + 1;
    let mut left = total;
    let survives = weights
        .iter()
        .take_while(|(weight, _)| {
            left = left.saturating_sub(*weight);
            left >= majority
        })
        .count();
    let equal = weights.iter().all(|(weight, _)| *weight == weights[0].0);
    let voters = weights.len();
    let votes = match equal {
        true => format!("{voters} votes, a majority is {}", voters / 2 + 1),
        false => format!(
            "weights {}, a majority is {majority} of {total}",
            join(&weights)
        ),
    };
    let why = match (survives, voters) {
        (0, 1) => "it is the only voter; add two nodes, or a node and an arbitrator".to_owned(),
        (0, 2) => {
            // Of unequal weights the heavier one is a majority by itself.
            let lost = match equal {
                true => "either of the two".to_owned(),
                false => crate::text::clipped(weights[0].1, 20),
            };
            format!(
                "{votes}: without {lost} the other one waits; bring back a missing member, or add a node or an arbitrator"
            )
        }
        (0, _) => format!("{votes}: the rest has none without the heaviest; change pc.weight"),
        (n, _) => format!(
            "{votes}: {} more would leave less",
            if n == 1 { "one" } else { "any" }
        ),
    };
    Losses { survives, why }
}

/// Gives each voter of unknown weight an equal part of the remaining total. If that does not divide evenly, one voter
/// gets all of it.
fn assign(total: u64, voters: &mut Vec<Voter>) {
    let known: u64 = voters.iter().filter_map(|voter| voter.weight).sum();
    let rest = total.saturating_sub(known);
    let unknown = voters.iter().filter(|voter| voter.weight.is_none()).count() as u64;
    let equally = (unknown > 0 && rest % unknown == 0).then(|| rest / unknown.max(1));
    let mut all = Some(rest);
    for voter in voters.iter_mut().filter(|voter| voter.weight.is_none()) {
        voter.weight = equally.or(all.take()).or(Some(0));
    }
    // A member of weight 0 has no vote.
    voters.retain(|voter| voter.weight != Some(0));
}

fn join(weights: &[(u64, &str)]) -> String {
    let shown = weights
        .iter()
        .take(8)
        .map(|(weight, name)| format!("{} {weight}", crate::text::clipped(name, 20)));
    let more = if weights.len() > 8 { ", ..." } else { "" };
    shown.collect::<Vec<_>>().join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survives(total: u64, weights: &[Option<u64>]) -> usize {
        let voters = weights.iter().enumerate().map(|(i, weight)| Voter {
            name: format!("n{i}"),
            weight: *weight,
        });
        losses(Component::Primary, total, voters.collect()).survives
    }

    #[test]
    fn a_majority_must_be_left() {
        assert_eq!(survives(1, &[Some(1)]), 0);
        assert_eq!(survives(2, &[Some(1); 2]), 0);
        assert_eq!(survives(3, &[Some(1); 3]), 1);
        assert_eq!(survives(4, &[Some(1); 4]), 1);
        assert_eq!(survives(5, &[Some(1); 5]), 2);
        assert_eq!(survives(5, &[Some(3), Some(1), Some(1)]), 0);
        assert_eq!(survives(3, &[Some(1), None, None]), 1);
        assert_eq!(
            survives(4, &[Some(1), None, None]),
            0,
            "one of the two may have a weight of 3"
        );
        assert_eq!(survives(3, &[Some(1), Some(1), Some(1), Some(0)]), 1);
    }

    #[test]
    fn of_two_unequal_voters_the_heavy_one_goes_on_alone() {
        let voters = [2, 1].map(|weight| Voter {
            name: format!("n{weight}"),
            weight: Some(weight),
        });
        let found = losses(Component::Primary, 3, voters.into());
        assert_eq!(found.survives, 0);
        assert!(
            found.why.contains("without n2 the other one waits"),
            "{}",
            found.why
        );
        assert!(!found.why.contains("either of the two"), "{}", found.why);
    }

    #[test]
    fn the_reason_names_the_remedy() {
        let voters = |n| {
            (0..n)
                .map(|i| Voter {
                    name: format!("n{i}"),
                    weight: Some(1),
                })
                .collect::<Vec<_>>()
        };
        assert!(
            losses(Component::Primary, 2, voters(2))
                .why
                .contains("add a node or an arbitrator")
        );
        assert!(
            losses(Component::NonPrimary, 0, voters(3))
                .why
                .contains("no majority")
        );
        assert!(
            losses(Component::Primary, 3, voters(3))
                .why
                .contains("3 votes, a majority is 2")
        );
    }
}
