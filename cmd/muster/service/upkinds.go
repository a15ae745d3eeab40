// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/api/v1alpha1/crds"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/statedir"
)

// kindsTime is far longer than the management plane takes to show a kind that it serves: it may hold one back for five
// seconds (internal/plane/kinddefinitions, served).
const kindsTime = 30 * time.Second

// kindsInterval is the time between two looks.
const kindsInterval = 100 * time.Millisecond

// waitForKinds returns when kubectl can make objects of muster's kinds: the management plane lists them in its
// discovery documents, without which kubectl fails with "no matches for kind", and writes what objects leave out.
func waitForKinds(ctx context.Context, dir statedir.Dir) error {
	config, err := clientcmd.BuildConfigFromFlags("", dir.ManagementKubeconfig())
	if err != nil {
		return fmt.Errorf("reading the way into the management plane: %w", err)
	}
	config.Timeout = kinds.AnswerTime
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the management plane: %w", err)
	}
	if err := kindsShown(ctx, client, kindsTime, kindsInterval); err != nil {
		return err
	}
	return sizesWritten(ctx, client.RESTClient(), kindsTime, kindsInterval)
}

// sizesWritten returns when the management plane writes the maxSize of a node group that leaves it out, which it begins
// to do some seconds after it shows the kind. It asks for one without having it made. A refusal that time does not mend
// is nothing to wait for.
func sizesWritten(ctx context.Context, plane rest.Interface, timeout, interval time.Duration) error {
	const group = `{"apiVersion": "muster.dev/v1alpha1", "kind": "NodeGroup", "metadata": {"name": "asked"}, "spec": {"name": "asked", "scalingConfig": {"desiredSize": 0}}}`
	err := terminal.Poll(ctx, timeout, interval, func(ctx context.Context) (bool, error) {
		err := plane.Post().AbsPath("/apis/muster.dev/v1alpha1/namespaces/default/nodegroups").Param("dryRun", metav1.DryRunAll).
			SetHeader("Content-Type", "application/json").Body([]byte(group)).Do(ctx).Error()
		if _, answered := errors.AsType[*apierrors.StatusError](err); !answered && err != nil || apierrors.IsServiceUnavailable(err) || apierrors.IsInvalid(err) {
			return false, err
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the management plane writes the maxSize of node groups: %w", err)
	}
	return nil
}

// kindsShown asks as kubectl does.
func kindsShown(ctx context.Context, plane discovery.ServerResourcesInterface, timeout, interval time.Duration) error {
	definitions, err := crds.All()
	if err != nil {
		return err
	}
	err = terminal.Poll(ctx, timeout, interval, func(context.Context) (bool, error) {
		_, lists, err := plane.ServerGroupsAndResources()
		if err != nil {
			return false, err
		}
		for _, d := range definitions {
			version := metav1.GroupVersion{Group: d.Spec.Group, Version: d.Spec.Versions[0].Name}
			if !shows(lists, version.String(), d.Spec.Names.Kind) {
				return false, fmt.Errorf("kind %s is not shown", d.Spec.Names.Kind)
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the management plane shows muster's kinds to kubectl: %w", err)
	}
	return nil
}

func shows(lists []*metav1.APIResourceList, version, kind string) bool {
	return slices.ContainsFunc(lists, func(list *metav1.APIResourceList) bool {
		return list.GroupVersion == version && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind })
	})
}
