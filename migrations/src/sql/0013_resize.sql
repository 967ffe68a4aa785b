-- What an attempt was charged for until it gave nodes back: a list of intervals with their charges, the last of which ends when `charge`
-- begins. None: `charge` holds from the start.
alter table attempts add column past_charges jsonb;
