// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

// TestKarpenterDrift has Karpenter replace its machines, since they are not of the image that its node class chooses any
// more as there is a newer one: no machine is left over, and no pod is without a machine.
//
//story:about addons/karpenter aws/ami cloud/ec2/fleet cloud/ec2/instance cloud/ec2/offering cloud/ssm
//story:needs karpenter
func TestKarpenterDrift(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	k := &karpenter{newIAM(t, i)}
	k.install()
	k.mustKubectl("patch", "nodepool", "default", "--type=merge", "-p", `{"spec":{"disruption":{"budgets":[{"nodes":"100%"}]}}}`)
	for _, step := range []struct {
		name string
		run  func(*karpenter)
	}{
		{"a newer image", (*karpenter).newerImage},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(&karpenter{k.step(t)}) }) {
			return // the next step would begin with what this one left
		}
	}
}

// choosesImages has the node class choose images by a term.
func (k *karpenter) choosesImages(term string) {
	k.t.Helper()
	k.mustKubectl("patch", "ec2nodeclass", "default", "--type=merge", "-p", `{"spec":{"amiFamily":"AL2023","amiSelectorTerms":[`+term+`]}}`)
}

// imagesOf are the images of the NodePool's instances that have not ended, by the instances' ids.
func (k *karpenter) imagesOf() map[string]string {
	k.t.Helper()
	out, err := k.aws(k.admin, "ec2", "describe-instances", "--filters", "Name=tag:karpenter.sh/nodepool,Values=default", "Name=instance-state-name,Values=pending,running,stopping,stopped",
		"--query", "Reservations[].Instances[].[InstanceId,ImageId]", "--output", "text")
	if err != nil {
		k.t.Fatal(err)
	}
	images := map[string]string{}
	for line := range strings.Lines(out) {
		if id, image, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			images[id] = image
		}
	}
	return images
}

// replaced waits until all machines of before are gone, and as many of an image are in their place.
func (k *karpenter) replaced(before map[string]string, image string) time.Duration {
	k.t.Helper()
	return k.eventually(fmt.Sprintf("%d machines of %s are in the place of %v", len(before), image, before), func() error {
		now := k.imagesOf()
		for id, is := range now {
			if _, old := before[id]; old || is != image {
				return fmt.Errorf("machines %v", now)
			}
		}
		if len(now) != len(before) {
			return fmt.Errorf("machines %v", now)
		}
		return nil
	})
}

// newerImage has machines of an image that is not the newest any more replaced.
func (k *karpenter) newerImage() {
	is, earlier := release.Default(), release.Default()
	earlier.Version = is.Earlier[0]
	k.choosesImages(fmt.Sprintf(`{"id":%q}`, ami.OfRelease(earlier)))
	k.wants("kept", 2, "{cpu: 500m, memory: 256Mi}")
	k.runs("kept", 2)
	k.owned(2)
	before := k.imagesOf()
	for id, image := range before {
		if image != ami.OfRelease(earlier) {
			k.t.Fatalf("machine %s is of image %s, and not of %s", id, image, ami.OfRelease(earlier))
		}
	}
	k.choosesImages(`{"alias":"al2023@latest"}`)
	k.t.Logf("a newer image to all machines of it: %v", k.replaced(before, ami.OfRelease(is)).Round(100*time.Millisecond))
	k.runs("kept", 2)
	k.owned(2)
	k.empties()
}
