package validation

import (
	"errors"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// ParseCronSchedule parses a cron schedule: five fields, a name such as @daily, or @every with a duration; a prefix
// CRON_TZ=<zone> sets the time zone.
func ParseCronSchedule(text string) (cron.Schedule, error) {
	// The parser panics on a zone that nothing follows.
	if (strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=")) && !strings.Contains(text, " ") {
		return nil, errors.New("no schedule after the time zone")
	}
	return cron.ParseStandard(text)
}

// Fires reports whether a schedule has a next time. One such as 30 February has none.
func Fires(schedule cron.Schedule, after time.Time) bool { return !schedule.Next(after).IsZero() }
