use super::sim::*;
use crate::policy::Policy;
#[test]
fn debug_one() {
    for (machine, a) in [(machine(chunked, 0.02), 0.3)] {
        for seed in 0..8 {
            let mut c = controller(Policy::Goodput);
            let mut texts = [text(2000, move |_| a)];
            run(&mut c, &machine, &mut texts, &mut Dice(seed));
            let t = &texts[0];
            let mut hist = vec![0; 20];
            t.trace.iter().for_each(|(n, _)| hist[(*n).min(19)] += 1);
            println!("{a} seed {seed}: {:.3} probes {} forced {} lens {hist:?}", t.speedup(), t.probes(), t.state.stats.forced_bypasses);
            if seed == 1 { println!("{:?}", (1..14).map(|r| (c.costs().step(r, 100) * 1000.0).round()).collect::<Vec<_>>()); 
              println!("{:?}", t.state.tracks[0]); println!("{:?}", t.trace.iter().map(|(n, p)| if *p { 100 } else { *n }).take(150).collect::<Vec<_>>()); }
        }
    }
}
