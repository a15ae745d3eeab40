// SPDX-License-Identifier: Apache-2.0

package redaction_test

import (
	"strings"
	"testing"

	"muster.dev/muster/internal/explain/redaction"
)

// BenchmarkText redacts 256 KiB of a kubelet's log, which is as much as a bundle has of one.
func BenchmarkText(b *testing.B) {
	const line = `I1120 11:00:01.000000    1234 reconciler_common.go:251] "operationExecutor.VerifyControllerAttachedVolume started for volume \"kube-api-access-abcde\" (UniqueName: \"kubernetes.io/projected/0b9f\") pod \"coredns-7d\" (UID: \"0b9f\") " pod="kube-system/coredns-7d"` + "\n"
	text := strings.Repeat(line, (256<<10)/len(line))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		redaction.Text(text)
	}
}
