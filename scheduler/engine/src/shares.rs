//! Fair share: the tree of associations, and each user's factor in priorities.
//!
//! Fair Tree: at every level children are ordered by LF = S ÷ U, where S is the child's part of the shares and U its part of the usage
//! among siblings (no usage: infinite; no shares: 0). Users come before accounts of the same LF. A walk from the root in that order
//! ranks the users; a factor is rank ÷ users. Accounts of equal LF are merged, their children competing in one list, as Slurm's manual
//! says (its code does not). A tied user has the rank of the one before, and the first child of a tied account starts tied.
//!
//! Classic: 2^(−UE ÷ S), where S is the product of the shares' parts and UE mixes a user's part of all usage with its account's.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use berth_model::association::{Association, AssociationKey, Fairshare, Share, Terms};
use berth_model::policy::FairShareRule;

#[derive(Clone, Debug, Default)]
struct Place {
    /// The root has none.
    key: Option<AssociationKey>,
    parent: usize,
    terms: Terms,
    children: Vec<usize>,
    usage: f64,
    /// Part of the siblings' shares and usage.
    shares: f64,
    part: f64,
    level: f64,
    factor: f64,
}

impl Place {
    fn is_user(&self) -> bool {
        self.key.as_ref().is_some_and(|key| key.user.is_some())
    }
}

/// The tree, with usage and factors as of the last full plan.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The first is the root; parents come before their children.
    places: Vec<Place>,
    index: HashMap<AssociationKey, usize>,
    most_priority: u32,
}

impl Tree {
    /// Associations that are written down, and `users` that need not be: they have one share and no limits of their own.
    pub fn build<'a>(written: &'a BTreeMap<AssociationKey, Association>, users: impl Iterator<Item = &'a AssociationKey>) -> Self {
        let mut tree = Tree { places: vec![Place::default()], ..Tree::default() };
        let keys: BTreeSet<&AssociationKey> = written.keys().chain(users).collect();
        for key in keys {
            tree.place(key, written, &mut BTreeSet::new());
        }
        let priorities = (1..tree.places.len()).map(|at| tree.priority(at));
        tree.most_priority = priorities.max().unwrap_or(0);
        tree
    }

    /// Finds or makes a place, and those above it. `below` are those on the way: an account above itself is put below its tenant.
    fn place(
        &mut self,
        key: &AssociationKey,
        written: &BTreeMap<AssociationKey, Association>,
        below: &mut BTreeSet<AssociationKey>,
    ) -> usize {
        if let Some(known) = self.index.get(key) {
            return *known;
        }
        below.insert(key.clone());
        let association = written.get(key);
        let tenant = AssociationKey::tenant(key.tenant.clone());
        let above = match (&key.account, &key.user) {
            (None, _) => None,
            (Some(account), Some(_)) => Some(AssociationKey::account(key.tenant.clone(), account.clone())),
            (Some(_), None) => {
                let parent = association.and_then(|a| a.parent.clone()).map(|parent| AssociationKey::account(key.tenant.clone(), parent));
                Some(parent.filter(|parent| !below.contains(parent)).unwrap_or(tenant))
            }
        };
        let parent = above.map_or(0, |above| self.place(&above, written, below));
        let at = self.places.len();
        let terms = association.map(|a| a.terms.clone()).unwrap_or_default();
        self.places.push(Place { key: Some(key.clone()), parent, terms, ..Place::default() });
        self.places[parent].children.push(at);
        self.index.insert(key.clone(), at);
        at
    }

    pub fn has(&self, key: &AssociationKey) -> bool {
        self.index.contains_key(key)
    }

    /// From the user up to the tenant. What is not in the tree stands for itself alone.
    pub fn chain(&self, key: &AssociationKey) -> Vec<(&AssociationKey, &Terms)> {
        let first = self.index.get(key).copied().unwrap_or(0);
        let up = std::iter::successors(Some(first), |at| Some(self.places[*at].parent)).take_while(|at| *at > 0);
        up.filter_map(|at| Some((self.places[at].key.as_ref()?, &self.places[at].terms))).collect()
    }

    pub fn has_limits(&self) -> bool {
        let none = Terms { fairshare: Fairshare::default(), priority: None, ..Terms::default() };
        let binds = |terms: &Terms| Terms { fairshare: Fairshare::default(), priority: None, ..terms.clone() } != none;
        self.places.iter().any(|place| binds(&place.terms))
    }

    /// The user's fair-share factor. Nobody's that the tree does not know.
    pub fn factor(&self, key: &AssociationKey) -> f64 {
        self.index.get(key).map_or(0.0, |at| self.places[*at].factor)
    }

    /// The association's priority ÷ the greatest of all.
    pub fn association_factor(&self, key: &AssociationKey) -> f64 {
        match (self.index.get(key), self.most_priority) {
            (Some(at), most) if most > 0 => f64::from(self.priority(*at)) / f64::from(most),
            _ => 0.0,
        }
    }

    fn priority(&self, at: usize) -> u32 {
        let up = std::iter::successors(Some(at), |at| (*at > 0).then(|| self.places[*at].parent));
        up.filter_map(|at| self.places[at].terms.priority).next().unwrap_or(0)
    }

    /// Works out all factors. `usage` calls its argument with each user's usage, in as many parts as it likes.
    pub fn rank(&mut self, rule: FairShareRule, usage: impl FnOnce(&mut dyn FnMut(&AssociationKey, f64))) {
        self.places.iter_mut().for_each(|place| place.usage = 0.0);
        usage(&mut |key, used| {
            if let Some(at) = self.index.get(key) {
                self.places[*at].usage += used;
            }
        });
        for at in (1..self.places.len()).rev() {
            let (used, parent) = (self.places[at].usage, self.places[at].parent);
            self.places[parent].usage += used;
        }
        let users = self.places.iter().filter(|place| place.is_user()).count();
        let mut order = Order { rank: users, next: users, users };
        self.measure(0);
        match rule {
            FairShareRule::FairTree => self.walk(self.competitors(0), false, &mut order),
            FairShareRule::Classic => self.mix(0, 1.0, None),
        }
    }

    /// Those who compete below a place: children of an account with `parent` compete beside it.
    fn competitors(&self, at: usize) -> Vec<usize> {
        let mut all = Vec::new();
        for child in &self.places[at].children {
            let place = &self.places[*child];
            if place.terms.fairshare == Fairshare::Parent && !place.is_user() {
                all.extend(self.competitors(*child));
            } else {
                all.push(*child);
            }
        }
        all
    }

    /// Parts and LF of all below a place.
    fn measure(&mut self, at: usize) {
        let rivals = self.competitors(at);
        let shares = |place: &Place| match place.terms.fairshare {
            Fairshare::Shares(shares) => f64::from(shares),
            Fairshare::Parent => 0.0,
        };
        let all_shares: f64 = rivals.iter().map(|rival| shares(&self.places[*rival])).sum();
        let all_usage = self.places[at].usage;
        for rival in rivals {
            let place = &mut self.places[rival];
            place.part = if all_usage > 0.0 { place.usage / all_usage } else { 0.0 };
            place.shares = if all_shares > 0.0 { shares(place) / all_shares } else { 0.0 };
            place.level = match place.terms.fairshare {
                Fairshare::Parent => f64::INFINITY,
                _ if place.shares == 0.0 => 0.0,
                _ => place.shares / place.part,
            };
            self.measure(rival);
        }
    }

    /// Ranks the users of a list of rivals and of all below it.
    fn walk(&mut self, mut rivals: Vec<usize>, starts_tied: bool, order: &mut Order) {
        let key = |places: &[Place], at: usize| (places[at].level, !places[at].is_user());
        rivals.sort_by(|a, b| {
            let ((a_level, a_kind), (b_level, b_kind)) = (key(&self.places, *a), key(&self.places, *b));
            b_level.partial_cmp(&a_level).unwrap_or(Ordering::Equal).then(a_kind.cmp(&b_kind)).then(a.cmp(b))
        });
        let mut is_tied = starts_tied;
        for equals in rivals.chunk_by(|a, b| self.places[*a].level == self.places[*b].level).map(<[usize]>::to_vec).collect::<Vec<_>>() {
            let (users, accounts): (Vec<usize>, Vec<usize>) = equals.into_iter().partition(|at| self.places[*at].is_user());
            for user in users {
                self.places[user].factor = order.next(is_tied);
                is_tied = true;
            }
            let below: Vec<usize> = accounts.into_iter().flat_map(|account| self.competitors(account)).collect();
            if !below.is_empty() {
                self.walk(below, is_tied, order);
            }
            is_tied = false;
        }
    }

    /// The classic rule below a place, of which the part of all shares and the effective usage are given.
    fn mix(&mut self, at: usize, shares: f64, effective: Option<f64>) {
        let all = self.places[0].usage;
        for rival in self.competitors(at) {
            let place = &self.places[rival];
            let actual = if all > 0.0 { (place.usage / all).min(1.0) } else { 0.0 };
            let (own_shares, own_effective) = match (place.terms.fairshare, effective) {
                (Fairshare::Parent, Some(above)) => (shares, above),
                (_, None) => (shares * place.shares, actual),
                (_, Some(above)) => (shares * place.shares, actual + (above - actual) * place.shares),
            };
            self.places[rival].factor = if own_shares > 0.0 { (-own_effective / own_shares).exp2() } else { 0.0 };
            self.mix(rival, own_shares, Some(own_effective));
        }
    }

    /// The tree as lines, parents before their children, by name.
    pub fn lines(&self) -> Vec<Share> {
        let mut lines = Vec::with_capacity(self.places.len());
        self.add_lines(0, 0, &mut lines);
        lines
    }

    fn add_lines(&self, at: usize, depth: u32, lines: &mut Vec<Share>) {
        let place = &self.places[at];
        if let Some(key) = &place.key {
            lines.push(Share {
                tenant: key.tenant.clone(),
                account: key.account.clone(),
                user: key.user.clone(),
                depth,
                fairshare: place.terms.fairshare,
                norm_shares: place.shares,
                raw_usage: place.usage,
                effective_usage: place.part,
                level_fs: Some(place.level).filter(|level| level.is_finite()),
                factor: place.is_user().then_some(place.factor),
            });
        }
        let mut children = place.children.clone();
        children.sort_by_key(|child| (!self.places[*child].is_user(), self.places[*child].key.clone()));
        children.into_iter().for_each(|child| self.add_lines(child, depth + 1, lines));
    }
}

/// The ranks that are left.
struct Order {
    rank: usize,
    /// The rank without ties.
    next: usize,
    users: usize,
}

impl Order {
    fn next(&mut self, is_tied: bool) -> f64 {
        if !is_tied {
            self.rank = self.next;
        }
        self.next -= 1;
        self.rank as f64 / self.users as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Name;

    /// `path` is tenant, account, user; the tests' accounts are tenants, or accounts of the one tenant `t` that is dissolved.
    fn key(path: &str) -> AssociationKey {
        let mut names = path.split('/').map(|name| Name::new(name).unwrap());
        AssociationKey { tenant: names.next().unwrap(), account: names.next(), user: names.next() }
    }

    fn shares(shares: u32) -> Fairshare {
        Fairshare::Shares(shares)
    }

    /// Factors of users by their names. All stand below tenant `t`, which has all shares; accounts below it are as the reference's
    /// below the root, and its users are users of an account with `parent`.
    fn factors(rule: FairShareRule, places: &[(&str, Fairshare, f64)]) -> BTreeMap<String, f64> {
        let written = places.iter().map(|(path, fairshare, _)| {
            let terms = Terms { fairshare: *fairshare, ..Terms::default() };
            (key(path), Association { key: key(path), parent: None, terms })
        });
        let mut tree = Tree::build(&written.collect(), std::iter::empty());
        tree.rank(rule, |take| places.iter().for_each(|(path, _, usage)| take(&key(path), *usage)));
        let users = tree.lines().into_iter().filter_map(|line| Some((line.user?.to_string(), line.factor?)));
        users.collect()
    }

    const DISSOLVED: (&str, Fairshare, f64) = ("t/direct", Fairshare::Parent, 0.0);

    fn assert_factors(found: &BTreeMap<String, f64>, expected: &[(&str, f64)]) {
        for (user, factor) in expected {
            assert!((found[*user] - factor).abs() < 1e-4, "{user}: {} is not {factor} in {found:?}", found[*user]);
        }
        assert_eq!(found.len(), expected.len());
    }

    #[test]
    fn users_are_ranked_by_a_walk_of_the_tree() {
        let places = [
            DISSOLVED,
            ("t/a", shares(40), 0.0),
            ("t/a/a1", shares(1), 300.0),
            ("t/a/a2", shares(1), 100.0),
            ("t/b", shares(50), 0.0),
            ("t/b/b1", shares(1), 500.0),
            ("t/b/b2", shares(3), 0.0),
            // C is an account below B; by `parent` of it.
            ("t/direct/d", shares(10), 0.0),
        ];
        let mut written: BTreeMap<AssociationKey, Association> = places
            .iter()
            .map(|(path, fairshare, _)| {
                (key(path), Association { key: key(path), parent: None, terms: Terms { fairshare: *fairshare, ..Terms::default() } })
            })
            .collect();
        let c = Association { key: key("t/c"), parent: Name::new("b").ok(), terms: Terms { fairshare: shares(2), ..Terms::default() } };
        written.insert(key("t/c"), c);
        for user in ["t/c/c1", "t/c/c2"] {
            written.insert(key(user), Association { key: key(user), parent: None, terms: Terms::default() });
        }
        let mut tree = Tree::build(&written, std::iter::empty());
        tree.rank(FairShareRule::FairTree, |take| {
            places.iter().for_each(|(path, _, usage)| take(&key(path), *usage));
            take(&key("t/c/c1"), 60.0);
            take(&key("t/c/c2"), 40.0);
        });
        let level = |path: &str| tree.places[tree.index[&key(path)]].level;
        let levels = [
            ("t/a", 1.0),
            ("t/b", 0.8333),
            ("t/a/a1", 0.6667),
            ("t/a/a2", 2.0),
            ("t/b/b1", 0.2),
            ("t/c", 2.0),
            ("t/c/c1", 0.8333),
            ("t/c/c2", 1.25),
        ];
        for (path, expected) in levels {
            assert!((level(path) - expected).abs() < 1e-4, "{path}: {}", level(path));
        }
        assert!(level("t/direct/d").is_infinite() && level("t/b/b2").is_infinite());
        let found: BTreeMap<String, f64> = tree.lines().into_iter().filter_map(|l| Some((l.user?.to_string(), l.factor?))).collect();
        let order = ["d", "a2", "a1", "b2", "c2", "c1", "b1"];
        let expected: Vec<(&str, f64)> = order.iter().zip((1..=7).rev()).map(|(user, rank)| (*user, f64::from(rank) / 7.0)).collect();
        assert_factors(&found, &expected);
    }

    #[test]
    fn tied_accounts_are_merged() {
        let places = [
            DISSOLVED,
            ("t/x", shares(1), 0.0),
            ("t/x/x1", shares(1), 30.0),
            ("t/x/x2", shares(1), 70.0),
            ("t/y", shares(1), 0.0),
            ("t/y/y1", shares(1), 20.0),
            ("t/y/y2", shares(1), 80.0),
            ("t/direct/z", shares(2), 200.0),
        ];
        let found = factors(FairShareRule::FairTree, &places);
        assert_factors(&found, &[("z", 1.0), ("y1", 1.0), ("x1", 0.6), ("x2", 0.4), ("y2", 0.2)]);
    }

    #[test]
    fn without_usage_all_are_equal_and_without_shares_last() {
        let places = [("t/x/x1", shares(1), 0.0), ("t/x/x2", shares(5), 0.0), ("t/x/x3", shares(0), 0.0)];
        assert_factors(&factors(FairShareRule::FairTree, &places), &[("x1", 1.0), ("x2", 1.0), ("x3", 1.0 / 3.0)]);
    }

    #[test]
    fn a_user_with_its_parents_share_comes_first() {
        let places = [("t/x/x1", Fairshare::Parent, 90.0), ("t/x/x2", shares(1), 10.0)];
        assert_factors(&factors(FairShareRule::FairTree, &places), &[("x1", 1.0), ("x2", 0.5)]);
    }

    #[test]
    fn the_classic_rule_halves_with_each_share_used() {
        let places = [
            ("t", Fairshare::Parent, 0.0),
            ("t/x", shares(50), 0.0),
            ("t/x/x1", shares(1), 0.3),
            ("t/x/x2", shares(1), 0.0),
            ("t/y", shares(50), 0.0),
            ("t/y/y1", shares(1), 0.7),
        ];
        let found = factors(FairShareRule::Classic, &places);
        assert_factors(&found, &[("x1", 0.4353), ("x2", 0.6598), ("y1", 0.3789)]);
    }

    #[test]
    fn an_account_above_itself_stands_below_its_tenant() {
        let association =
            |path: &str, parent: &str| (key(path), Association { key: key(path), parent: Name::new(parent).ok(), terms: Terms::default() });
        let written = BTreeMap::from([association("t/x", "y"), association("t/y", "x")]);
        let tree = Tree::build(&written, std::iter::empty());
        assert_eq!(tree.lines().iter().map(|line| line.depth).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn priorities_are_inherited_and_measured_by_the_greatest() {
        let mut written = BTreeMap::new();
        for (path, priority) in [("t/x", Some(10)), ("t/x/x1", None), ("t/x/x2", Some(40)), ("t/y/y1", None)] {
            written.insert(key(path), Association { key: key(path), parent: None, terms: Terms { priority, ..Terms::default() } });
        }
        let tree = Tree::build(&written, std::iter::empty());
        let factor = |path: &str| tree.association_factor(&key(path));
        assert_eq!((factor("t/x/x1"), factor("t/x/x2"), factor("t/y/y1")), (0.25, 1.0, 0.0));
    }
}
