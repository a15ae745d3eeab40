// SPDX-License-Identifier: Apache-2.0

package logfunction

import "muster.dev/muster/internal/aws/logsinsights/logvalue"

func times() map[string]Function {
	return map[string]Function{
		"bin": {Least: 1, Most: 1, Periods: []int{0}, Apply: func(c Context, a []logvalue.Value) logvalue.Value {
			period, ok := ParsePeriod(a[0].String())
			if !ok {
				return logvalue.Null()
			}
			return logvalue.Time(period.Floor(c.Timestamp))
		}},
		"datefloor": rounding(Period.Floor),
		"dateceil":  rounding(Period.Ceil),
		"fromMillis": plain(1, 1, func(a []logvalue.Value) logvalue.Value {
			number, ok := a[0].Number()
			if !ok {
				return logvalue.Null()
			}
			return instant(number)
		}),
		"toMillis": numeric(1, 1, func(a []float64) float64 { return a[0] }),
		"now":      {Apply: func(c Context, _ []logvalue.Value) logvalue.Value { return logvalue.Number(float64(c.Now.Unix())) }},
	}
}

// maxInstant is the end of the year 9999 in milliseconds since the epoch: later timestamps cannot be printed.
const maxInstant = 253402300799999

func instant(milliseconds float64) logvalue.Value {
	if milliseconds < -maxInstant || milliseconds > maxInstant {
		return logvalue.Null()
	}
	return logvalue.Time(int64(milliseconds))
}

func rounding(round func(Period, int64) int64) Function {
	f := plain(2, 2, func(a []logvalue.Value) logvalue.Value {
		number, ok := a[0].Number()
		period, isPeriod := ParsePeriod(a[1].String())
		if !ok || !isPeriod || number < -maxInstant || number > maxInstant {
			return logvalue.Null()
		}
		return logvalue.Time(round(period, int64(number)))
	})
	f.Periods = []int{1}
	return f
}
