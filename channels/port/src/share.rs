//! Sharing a budget among texts. It must not know what the units are.

/// The largest cap under which all costs together stay within the budget: short texts stay whole, long ones share the rest.
pub fn even_share(costs: impl IntoIterator<Item = usize>, budget: usize) -> usize {
    let mut costs: Vec<usize> = costs.into_iter().collect();
    costs.sort_unstable();
    let mut left = budget;
    for (at, cost) in costs.iter().enumerate() {
        let share = left / (costs.len() - at);
        if *cost > share {
            return share;
        }
        left -= cost;
    }
    budget
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_ones_stay_whole() {
        assert_eq!(even_share([10, 10], 100), 100);
        assert_eq!(even_share([10, 500, 500], 100), 45);
        assert_eq!(even_share([], 100), 100);
    }

    proptest! {
        #[test]
        fn what_is_capped_fits(costs in proptest::collection::vec(0_usize..10_000, 0..40), budget in 0_usize..10_000) {
            let cap = even_share(costs.iter().copied(), budget);
            prop_assert!(costs.iter().map(|cost| cost.min(&cap)).sum::<usize>() <= budget);
        }
    }
}
