//! Requests of one set in a list: they stand together, and share a mark.

use std::collections::BTreeMap;

/// The items with their marks: those of one set follow the first of them in the list, under one number from 1; the others have none,
/// nor has an item of whose set no other is in the list. Otherwise the order stays.
pub fn together<T>(items: Vec<T>, set: impl Fn(&T) -> Option<String>) -> Vec<(Option<usize>, T)> {
    let mut sets: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        if let Some(set) = set(item) {
            sets.entry(set).or_default().push(at);
        }
    }
    let mut shared: Vec<Vec<usize>> = sets.into_values().filter(|places| places.len() > 1).collect();
    shared.sort();
    let of = |at: usize| shared.iter().position(|places| places.binary_search(&at).is_ok());
    let mut placed: Vec<_> = items
        .into_iter()
        .enumerate()
        .map(|(at, item)| {
            let set = of(at);
            let first = set.and_then(|set| shared.get(set)?.first().copied());
            ((first.unwrap_or(at), at), set.map(|set| set + 1), item)
        })
        .collect();
    placed.sort_by_key(|(place, _, _)| *place);
    placed.into_iter().map(|(_, mark, item)| (mark, item)).collect()
}

#[cfg(test)]
mod tests {
    use super::together;

    #[test]
    fn those_of_a_set_follow_the_first_and_all_else_stays() {
        let list = vec!["b1", "x", "a1", "y", "a2", "b2", "c1", "b3"];
        let set = |item: &&str| (item.len() == 2).then(|| item[..1].to_owned());
        assert_eq!(
            together(list, set),
            [
                (Some(1), "b1"),
                (Some(1), "b2"),
                (Some(1), "b3"),
                (None, "x"),
                (Some(2), "a1"),
                (Some(2), "a2"),
                (None, "y"),
                (None, "c1"),
            ]
        );
        assert_eq!(together(Vec::<&str>::new(), |_| None), []);
    }
}
