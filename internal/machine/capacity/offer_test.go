// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"strings"
	"testing"
)

func TestOffer(t *testing.T) {
	const gib = int64(1) << 30
	for _, c := range []struct {
		name     string
		host     Host
		clusters int
		memory   int64
		vcpus    int
	}{
		{"an eighth is kept", Host{CPUs: 2, Memory: 24 * gib}, 1, 21 * gib, 32},
		{"planes need more than an eighth", Host{CPUs: 2, Memory: 24 * gib}, 7, 18 * gib, 32},
		{"a small host", Host{CPUs: 1, Memory: 4 * gib}, 1, 5 * gib / 2, 16},
		{"planes take all there is", Host{CPUs: 1, Memory: 2 * gib}, 2, 0, 16},
		{"not known", Host{}, 1, 0, 0},
	} {
		if o := c.host.Offer(c.clusters); o.Memory != c.memory || o.VCPUs != c.vcpus {
			t.Errorf("%s: %d MiB and %d vCPUs", c.name, o.Memory>>20, o.VCPUs)
		}
	}
}

func TestTake(t *testing.T) {
	left := Host{CPUs: 2, Memory: 24 << 30}.Offer(1)
	for range 5 {
		if err := left.Take("t3.medium"); err != nil {
			t.Fatal(err)
		}
	}
	before := left
	err := left.Take("t3.medium")
	if err == nil || err.Error() != "one takes 4.0 GiB of memory and 2 vCPUs, and the host has 1.0 GiB and 22 left of the 21.0 GiB and 32 that it offers machines" {
		t.Errorf("the sixth: %v", err)
	}
	if left != before {
		t.Errorf("a refusal took %+v of %+v", left, before)
	}
	for n := range 4 {
		if err := left.Take(""); err != nil {
			t.Errorf("machine %d without a type: %v", n, err)
		}
	}
	if err := left.Take("m4.xlarge"); err == nil || !strings.Contains(err.Error(), "one takes 0.2 GiB of memory and 1 vCPUs") {
		t.Errorf("a type that is not known: %v", err)
	}

	left = Host{CPUs: 1, Memory: 1 << 40}.Offer(1)
	if err := left.Take("m5.4xlarge"); err != nil {
		t.Error(err)
	}
	if err := left.Take("t3.small"); err == nil || !strings.Contains(err.Error(), "and 0 left of") {
		t.Errorf("without processors: %v", err)
	}
	left.Give("t3.small")
	if err := left.Take(""); err == nil || !strings.Contains(err.Error(), "and 0 left of") {
		t.Errorf("of less than nothing: %v", err)
	}
	var unknown Offer
	if err := unknown.Take("m5.4xlarge"); err != nil {
		t.Errorf("of a host that is not known: %v", err)
	}
}
