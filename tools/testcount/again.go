// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mostAgain is how many tests of one command are run again: more than that did not fail by chance.
const mostAgain = 4

// ended is what a test program prints that came to its end.
var ended = regexp.MustCompile(`(?m)^FAIL$`)

// failure is a package in which tests failed and nothing else went wrong.
type failure struct {
	pkg   string
	tests []string // those that are no subtests
	count int      // with subtests
}

// failureOf reads what a package's tests have printed. It reports false if the tests did not all come to their ends, or a race was
// found: what fails so is not run again.
func failureOf(pkg string, output map[test]*strings.Builder, c *counts) (failure, bool) {
	own := output[test{pkg, ""}]
	if own == nil || len(c.broken) == 0 || c.raced || !ended.MatchString(own.String()) {
		return failure{}, false
	}
	f := failure{pkg: pkg, count: c.failed}
	for name := range c.broken {
		f.tests = append(f.tests, regexp.QuoteMeta(name))
	}
	slices.Sort(f.tests)
	return f, true
}

// command is a `go test` of these tests alone, made of the one in which they failed; nil if that was none.
func (f failure) command(of []string) []string {
	n := slices.Index(of, "test")
	if n < 0 || !slices.Contains(of, "-json") {
		return nil
	}
	for n++; n < len(of) && strings.HasPrefix(of[n], "-"); n++ {
	}
	return append(slices.Clone(of[:n]), "-count=1", "-run=^("+strings.Join(f.tests, "|")+")$", f.pkg)
}

// again runs what failed in a command once more, alone, and reports whether all of it passes. Tests on real processes of a busy machine
// can fail by chance, and stop whoever has nothing to do with it. That they did is told.
func (r *report) again(ctx context.Context, command []string) bool {
	failures, whole := r.failures, r.whole
	r.failures, r.whole = nil, true
	tests := 0
	for _, f := range failures {
		tests += len(f.tests)
	}
	if !whole || tests == 0 || tests > mostAgain {
		return false
	}
	for _, f := range failures {
		args := f.command(command)
		if args == nil {
			return false
		}
		r.line(fmt.Sprintf("again %s: %s", f.pkg, strings.Join(f.tests, ", ")))
		second := newReport(r.out, r.log)
		if err := execute(ctx, args, second); err != nil || second.failed > 0 || second.passed == 0 {
			return false
		}
	}
	for _, f := range failures {
		r.failed -= f.count
		r.passed += f.count
		for _, name := range f.tests {
			r.flaky = append(r.flaky, f.pkg+" "+name)
		}
	}
	return true
}
