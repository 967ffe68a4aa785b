//! Tables that fit the terminal: the widest columns give way first, with an ellipsis.

/// One table.
pub struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Columns are never made narrower than this.
const NARROWEST: usize = 8;

impl Table {
    pub fn new(heads: &[&str]) -> Table {
        Table { heads: heads.iter().map(|head| (*head).to_owned()).collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub fn print(&self, is_wide: bool) {
        print!("{}", self.render(if is_wide { None } else { terminal_width() }));
    }

    /// As text; `width` in characters, `None` for as wide as it needs.
    pub fn render(&self, width: Option<usize>) -> String {
        let clean = |cell: &str| cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(|cell| clean(cell)).collect()).collect();
        let mut widths: Vec<usize> = self.heads.iter().map(|h| h.chars().count()).collect();
        for row in &rows {
            for (i, cell) in row.iter().enumerate() {
                widths[i] = widths[i].max(cell.chars().count());
            }
        }
        if let Some(width) = width {
            let gaps = 2 * widths.len().saturating_sub(1);
            while widths.iter().sum::<usize>() + gaps > width {
                let Some(widest) = (0..widths.len()).filter(|i| widths[*i] > NARROWEST).max_by_key(|i| widths[*i]) else { break };
                widths[widest] -= 1;
            }
        }
        std::iter::once(&self.heads).chain(&rows).map(|row| line(row, &widths)).collect()
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let length = cell.chars().count();
        if length > *width {
            text.extend(cell.chars().take(width - 1));
            text.push('…');
        } else {
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', width - length));
        }
        text.push_str("  ");
    }
    format!("{}\n", text.trim_end())
}

/// Columns of the terminal on standard output; `None` if it is none (a pipe gets all of it).
pub fn terminal_width() -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // Safety: the pointer is to our own variable.
    let answered = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) } == 0;
    (answered && size.ws_col > 0).then_some(size.ws_col as usize)
}

/// A time limit; the longest there is means none.
pub fn limit(seconds: u64) -> String {
    if seconds >= berth_model::amount::MAX_SECONDS { "UNLIMITED".to_owned() } else { duration(seconds) }
}

/// Seconds as Slurm writes them: `1-02:03:04`, `12:34`.
pub fn duration(seconds: u64) -> String {
    let (days, hours, minutes, seconds) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_its_width_and_keeps_all_without_one() {
        let mut table = Table::new(&["JOB", "NAME", "REASON"]);
        table.row(vec!["12".into(), "train".into(), "waits for resources: 8 GPUs of type h100\n".into()]);
        assert_eq!(table.render(Some(30)), "JOB  NAME   REASON\n12   train  waits for resourc…\n");
        assert!(table.render(None).contains("type h100"));
    }

    #[test]
    fn times_are_written_as_slurm_does() {
        for (seconds, expected) in [(5, "0:05"), (754, "12:34"), (3_661, "1:01:01"), (93_784, "1-02:03:04")] {
            assert_eq!(duration(seconds), expected);
        }
        assert_eq!((limit(60), limit(berth_model::amount::MAX_SECONDS)), ("1:00".to_owned(), "UNLIMITED".to_owned()));
    }
}
