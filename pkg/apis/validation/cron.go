package validation

import (
	"slices"
	"strconv"
	"strings"
)

// cronField is one of the fields of a cron schedule.
type cronField struct {
	low, high int
	names     []string // of low, low+1, ...
	days      bool     // L and W have a meaning
}

// cronFields are second, minute, hour, day of the month, month, day of the week
// and year.
func cronFields() []cronField {
	return []cronField{
		{high: 59},
		{high: 59},
		{high: 23},
		{low: 1, high: 31, days: true},
		{low: 1, high: 12, names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
		{high: 7, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}, days: true},
		{low: 1, high: 9999},
	}
}

// ValidCronSchedule reports whether text is a cron schedule: five fields (minute,
// hour, day of the month, month, day of the week), six with a year, or with
// seconds first when the last is no year, seven with both, or a name such as
// @daily.
func ValidCronSchedule(text string) bool {
	text = strings.TrimSpace(text)
	switch text {
	case "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly", "@always",
		"@5minutes", "@10minutes", "@15minutes", "@30minutes", "@everysecond":
		return true
	}
	parts, fields := strings.Fields(text), cronFields()
	switch len(parts) {
	case 5:
		fields = fields[1:6]
	case 6:
		if isYear(parts[5]) {
			fields = fields[1:]
		} else {
			fields = fields[:6]
		}
	case 7:
	default:
		return false
	}
	for i, part := range parts {
		if !fields[i].valid(part) {
			return false
		}
	}
	return true
}

func isYear(text string) bool {
	first, _, _ := strings.Cut(text, "-")
	n, err := strconv.Atoi(first)
	return err == nil && len(first) == 4 && n > 0
}

// valid reports whether text is a list of what the field can hold.
func (f cronField) valid(text string) bool {
	if text == "*" || text == "?" {
		return true
	}
	for item := range strings.SplitSeq(strings.ToUpper(text), ",") {
		if !f.validItem(item) {
			return false
		}
	}
	return true
}

// validItem reports whether text is a value, a range, either with a step, or one of
// the forms that only days have.
func (f cronField) validItem(text string) bool {
	if f.days && f.validDay(text) {
		return true
	}
	bounds, step, stepped := strings.Cut(text, "/")
	if stepped {
		if n, err := strconv.Atoi(step); err != nil || n <= 0 {
			return false
		}
		if bounds == "*" || bounds == "" {
			return bounds == "*"
		}
	}
	lower, upper, ranged := strings.Cut(bounds, "-")
	from, ok := f.value(lower)
	if !ok || !ranged {
		return ok
	}
	to, ok := f.value(upper)
	return ok && from <= to
}

// validDay accepts the last day (L, 5L), the nearest weekday (15W, LW) and the
// nth weekday of a month (5#3).
func (f cronField) validDay(text string) bool {
	if text == "L" || text == "LW" {
		return true
	}
	if day, n, ok := strings.Cut(text, "#"); ok {
		week, err := strconv.Atoi(n)
		_, known := f.value(day)
		return err == nil && known && week >= 1 && week <= 5
	}
	if day, ok := strings.CutSuffix(text, "L"); ok {
		_, known := f.value(day)
		return known
	}
	if day, ok := strings.CutSuffix(text, "W"); ok {
		_, known := f.value(day)
		return known
	}
	return false
}

func (f cronField) value(text string) (int, bool) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.low + i, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= f.low && n <= f.high
}
