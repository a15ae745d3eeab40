// SPDX-License-Identifier: Apache-2.0

package logfunction

import "muster.dev/muster/internal/aws/logsinsights/logvalue"

func conditions() map[string]Function {
	return map[string]Function{
		"ispresent": {Least: 1, Most: 1, Apply: func(_ Context, a []logvalue.Value) logvalue.Value { return logvalue.Bool(!a[0].IsNull()) }},
		"coalesce":  {Least: 1, Most: -1, Apply: coalesce},
		"if":        {Least: 3, Most: 3, Apply: choose},
		"case":      {Least: 2, Most: -1, Apply: choose},
	}
}

func coalesce(_ Context, a []logvalue.Value) logvalue.Value {
	for _, value := range a {
		if !value.IsNull() {
			return value
		}
	}
	return logvalue.Null()
}

// choose takes conditions and values in turn, and returns the value after the first condition that holds. A last argument
// without a partner is the value if none of the conditions holds.
func choose(_ Context, a []logvalue.Value) logvalue.Value {
	for len(a) >= 2 {
		if a[0].Truth() {
			return a[1]
		}
		a = a[2:]
	}
	if len(a) == 1 {
		return a[0]
	}
	return logvalue.Null()
}
