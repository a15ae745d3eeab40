// SPDX-License-Identifier: Apache-2.0

package karpentercontroller

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

// MinorOf returns the minor of Kubernetes that machines are launched of: the oldest of the minor that the API server says,
// the minor that the cluster is to have, and the minor that its machines go back to before it does, "" for none. So an
// upgrade begins with the API server, and a rollback with the machines.
func MinorOf(server string, c v1alpha1.ClusterSpec, goingBack string) (string, error) {
	oldest, err := release.All().OfMinor(release.Minor(server))
	if err != nil {
		return "", err
	}
	for _, minor := range []string{c.Version, goingBack} {
		if minor == "" {
			continue
		}
		other, err := release.All().OfMinor(minor)
		if err != nil {
			return "", err
		}
		if other.Distance(oldest) < 0 {
			oldest = other
		}
	}
	return oldest.Minor(), nil
}

// image is the image that machines are launched from. It is named by its id and not by Karpenter's alias: that follows
// the version of the API server, which Karpenter asks for every five minutes, and so would replace machines again that
// have just gone back.
func (k *Controller) image(ctx context.Context) (id string, err error) {
	minor, err := k.Minor(ctx)
	if err != nil {
		return "", err
	}
	image, ok := ami.Recommended(minor)
	if !ok {
		return "", fmt.Errorf("there is no image of Kubernetes %s", minor)
	}
	return image.ID, nil
}

// pause waits until the context ends, a time is over, or machines are to be of another image than the EC2NodeClass has.
func (k *Controller) pause(ctx context.Context, d time.Duration) {
	for end := time.After(d); ; {
		select {
		case <-ctx.Done():
			return
		case <-end:
			return
		case <-time.After(minorAgain):
		}
		if now, err := k.image(ctx); err == nil && k.chosen != "" && now != k.chosen {
			return
		}
	}
}
