// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Labels of what is run, as ginkgo takes them.
const (
	conformanceLabels = "Conformance"
	// restLabels are the specs that are not of [Conformance], but for those that are slow, must run alone, or are of a
	// feature, which a cluster has or has not.
	restLabels = "!Conformance && !Slow && !Serial && !Disruptive && !Flaky && Feature: isEmpty"
)

// restSkip are specs among them whose images are not made here: of upstream's own CSI and DRA drivers with their
// sidecars, and of NFS servers, which need a module of the host's kernel, too.
const restSkip = `\[Driver: (csi-hostpath|nfs|nfs3)\]|CSI Mock|MutableCSINodeAllocatableCount|\[DRA\]|PersistentVolumes NFS`

// limit is why specs cannot pass on a host of some kind. They are run all the same.
type limit struct {
	specs  *regexp.Regexp // of names
	reason string
}

// limited takes specs out of those that failed for which a limit is known.
func (o *outcome) limited(limits []limit) {
	o.failed = slices.DeleteFunc(o.failed, func(s spec) bool {
		at := slices.IndexFunc(limits, func(l limit) bool { return l.specs.MatchString(s.name()) })
		if at >= 0 {
			o.beyond = append(o.beyond, impossible{s, limits[at].reason})
		}
		return at >= 0
	})
}

// impossible is a spec that failed for a known reason.
type impossible struct {
	spec   spec
	reason string
}

// listBeyond lists them by reason.
func listBeyond(b *strings.Builder, all []impossible) {
	if len(all) == 0 {
		return
	}
	b.WriteString("Failed, as this kind of host cannot do it:\n")
	last := ""
	for _, i := range slices.SortedStableFunc(slices.Values(all), func(x, y impossible) int { return strings.Compare(x.reason, y.reason) }) {
		if i.reason != last {
			fmt.Fprintf(b, "  %s\n", i.reason)
			last = i.reason
		}
		fmt.Fprintf(b, "      %s\n", i.spec.name())
	}
}

// cut shortens what a spec says, which may be an object of thousands of bytes. The report has all of it.
func cut(text string) string {
	const most = 160
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// listReasons counts specs that skipped themselves by what they say.
func listReasons(b *strings.Builder, skipped []spec) {
	if len(skipped) == 0 {
		return
	}
	counts := map[string]int{}
	for _, s := range skipped {
		counts[s.why()]++
	}
	type reason struct {
		text  string
		count int
	}
	var reasons []reason
	for text, count := range counts {
		reasons = append(reasons, reason{text, count})
	}
	slices.SortFunc(reasons, func(x, y reason) int {
		if x.count != y.count {
			return y.count - x.count
		}
		return strings.Compare(x.text, y.text)
	})
	b.WriteString("Skipped themselves:\n")
	for _, r := range reasons {
		fmt.Fprintf(b, "  %d: %s\n", r.count, cut(r.text))
	}
}
