// SPDX-License-Identifier: Apache-2.0

package logfunction

import (
	"strconv"
	"strings"
	"time"
)

// Period is a number of milliseconds or of months. Weeks begin on Monday, months on their first day, all in UTC.
type Period struct {
	milliseconds int64
	months       int64 // 0 for a period of milliseconds
	origin       int64 // where a period of milliseconds begins, in milliseconds since the epoch
}

// monday is the first Monday after the epoch, which was a Thursday.
const monday = 4 * 24 * 3600 * 1000

// maxPeriods bounds the number before the unit, so that no period is longer than about 10,000 years.
const maxPeriods = 1_000_000_000

// ParsePeriod reads a period: a number above 0 and a unit, such as 5m, 1hr or 30 seconds. Units are those of AWS's page of the
// stats command: ms msec millisecond, s sec second, m min minute, h hr hour, d day, w week, mo mon month, q qtr quarter, y yr
// year; a unit of more than one letter may have an s.
func ParsePeriod(text string) (Period, bool) {
	digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	count, err := strconv.ParseInt(digits, 10, 64)
	unit, found := findUnit(strings.TrimSpace(text[len(digits):]))
	if err != nil || count < 1 || count > maxPeriods || !found || unit.months*count > 12*10_000 || unit.milliseconds*count > 2*maxInstant {
		return Period{}, false
	}
	return Period{unit.milliseconds * count, unit.months * count, unit.origin}, true
}

func findUnit(name string) (Period, bool) {
	name = strings.ToLower(name)
	if singular := strings.TrimSuffix(name, "s"); len(singular) > 1 && singular != name && name != "ms" {
		name = singular
	}
	switch name {
	case "ms", "msec", "millisecond":
		return Period{milliseconds: 1}, true
	case "s", "sec", "second":
		return Period{milliseconds: 1000}, true
	case "m", "min", "minute":
		return Period{milliseconds: 60 * 1000}, true
	case "h", "hr", "hour":
		return Period{milliseconds: 3600 * 1000}, true
	case "d", "day":
		return Period{milliseconds: 24 * 3600 * 1000}, true
	case "w", "week":
		return Period{milliseconds: 7 * 24 * 3600 * 1000, origin: monday}, true
	case "mo", "mon", "month":
		return Period{months: 1}, true
	case "q", "qtr", "quarter":
		return Period{months: 3}, true
	case "y", "yr", "year":
		return Period{months: 12}, true
	default:
		return Period{}, false
	}
}

// Floor returns the beginning of the period that a timestamp is in. Timestamps are milliseconds since the epoch.
func (p Period) Floor(timestamp int64) int64 {
	if p.months > 0 {
		return monthStart(floorDivide(monthOf(timestamp), p.months) * p.months)
	}
	return p.origin + floorDivide(timestamp-p.origin, p.milliseconds)*p.milliseconds
}

// Ceil returns the beginning of the next period, or the timestamp itself if a period begins there.
func (p Period) Ceil(timestamp int64) int64 {
	start := p.Floor(timestamp)
	switch {
	case start == timestamp:
		return start
	case p.months > 0:
		return monthStart(monthOf(start) + p.months)
	default:
		return start + p.milliseconds
	}
}

// monthOf counts months from the beginning of the year 0.
func monthOf(timestamp int64) int64 {
	t := time.UnixMilli(timestamp).UTC()
	return int64(t.Year())*12 + int64(t.Month()) - 1
}

func monthStart(month int64) int64 {
	year := floorDivide(month, 12)
	return time.Date(int(year), time.Month(month-year*12+1), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

func floorDivide(a, b int64) int64 {
	quotient := a / b
	if a%b != 0 && a < 0 {
		quotient--
	}
	return quotient
}
