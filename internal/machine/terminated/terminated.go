// SPDX-License-Identifier: Apache-2.0

// Package terminated remembers instances that are gone: EC2 describes them for an hour as terminated, and Auto Scaling
// tells of their end. Each is an AWSRecord with the name of its Machine. The controllers that end machines make them
// before they let a Machine go, so that an instance is at every moment either a Machine or remembered; [Sweep] removes
// them.
package terminated

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// For is how long an instance is remembered, as on EC2.
	For = time.Hour
	// Most is how many are remembered at once. The oldest are forgotten first.
	Most = 2000
)

// Remember makes the record of an instance that is gone. Doing it again changes nothing.
func Remember(ctx context.Context, api client.Client, m *v1alpha1.Machine, now time.Time) error {
	kept := m.DeepCopy()
	kept.ManagedFields, kept.Finalizers, kept.ResourceVersion, kept.Spec.UserData = nil, nil, "", nil
	if kept.Spec.LaunchTemplate != nil {
		kept.Spec.LaunchTemplate.UserData = ""
	}
	raw, err := json.Marshal(v1alpha1.TerminatedInstance{Machine: *kept, At: metav1.NewTime(now.UTC().Truncate(time.Second))})
	if err != nil {
		return fmt.Errorf("writing the record of machine %s: %w", m.Name, err)
	}
	record := &v1alpha1.AWSRecord{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name},
		Spec:       v1alpha1.AWSRecordSpec{Type: v1alpha1.RecordTerminatedInstance, Data: runtime.RawExtension{Raw: raw}},
	}
	if err := api.Create(ctx, record); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("remembering machine %s: %w", m.Name, err)
	}
	return nil
}

// List are the instances that are remembered.
func List(ctx context.Context, api client.Reader) ([]v1alpha1.TerminatedInstance, error) {
	records, err := list(ctx, api)
	if err != nil {
		return nil, err
	}
	var all []v1alpha1.TerminatedInstance
	for i := range records {
		var t v1alpha1.TerminatedInstance
		if err := json.Unmarshal(records[i].Spec.Data.Raw, &t); err != nil {
			return nil, fmt.Errorf("the record %s: spec.data is no terminated instance: %w", records[i].Name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// Sweep forgets those that have been remembered for long enough.
func Sweep(ctx context.Context, api client.Client, now time.Time) error {
	records, err := list(ctx, api)
	if err != nil {
		return err
	}
	slices.SortFunc(records, func(a, b v1alpha1.AWSRecord) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var errs []error
	for i := range records {
		if r := &records[i]; i >= Most || now.Sub(r.CreationTimestamp.Time) > For {
			if err := api.Delete(ctx, r, client.Preconditions{UID: &r.UID}); client.IgnoreNotFound(err) != nil {
				errs = append(errs, fmt.Errorf("forgetting machine %s: %w", r.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

func list(ctx context.Context, api client.Reader) ([]v1alpha1.AWSRecord, error) {
	var all v1alpha1.AWSRecordList
	if err := api.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing what is remembered of instances: %w", err)
	}
	return slices.DeleteFunc(all.Items, func(r v1alpha1.AWSRecord) bool { return r.Spec.Type != v1alpha1.RecordTerminatedInstance }), nil
}
