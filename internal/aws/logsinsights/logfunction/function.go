// SPDX-License-Identifier: Apache-2.0

package logfunction

import (
	"strings"
	"time"

	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

// Context is what functions without arguments and bin read.
type Context struct {
	Now       time.Time // of the start of the query
	Timestamp int64     // of the log event, in milliseconds since the epoch
}

// Function is a function of the query language.
type Function struct {
	Least, Most int   // number of arguments; Most below 0 means any number
	Periods     []int // positions of arguments that are periods, such as 5m
	Apply       func(c Context, arguments []logvalue.Value) logvalue.Value
}

// Find returns the function of a name, in any case.
func Find(name string) (Function, bool) {
	f, found := functions[strings.ToLower(name)]
	return f, found
}

// functions by their names in lower case. The list is never changed.
var functions = merge(numbers(), texts(), encodings(), times(), conditions(), addresses())

func merge(groups ...map[string]Function) map[string]Function {
	all := map[string]Function{}
	for _, group := range groups {
		for name, f := range group {
			all[strings.ToLower(name)] = f
		}
	}
	return all
}

// plain makes a function that is Null if an argument is.
func plain(least, most int, apply func(arguments []logvalue.Value) logvalue.Value) Function {
	return Function{Least: least, Most: most, Apply: func(_ Context, arguments []logvalue.Value) logvalue.Value {
		for _, argument := range arguments {
			if argument.IsNull() {
				return logvalue.Null()
			}
		}
		return apply(arguments)
	}}
}

// condition makes a function that is false if an argument is missing.
func condition(count int, holds func(arguments []logvalue.Value) bool) Function {
	return Function{Least: count, Most: count, Apply: func(_ Context, arguments []logvalue.Value) logvalue.Value {
		for _, argument := range arguments {
			if argument.IsNull() {
				return logvalue.Bool(false)
			}
		}
		return logvalue.Bool(holds(arguments))
	}}
}
