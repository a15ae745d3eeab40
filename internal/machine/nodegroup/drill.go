// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/drill"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/power"
	"muster.dev/muster/internal/plane/readiness"
)

// drillAgain is how often it is made sure that a machine has what a drill gives it: a machine that boots lost it.
const drillAgain = 5 * time.Second

// drill takes the next step of the machine's drill (package drill). It returns when the next one is due, or 0, and
// reports true if nothing else is to be done for the machine now.
func (t *turn) drill(ctx context.Context) (wait time.Duration, ends bool, err error) {
	m, now := t.m, t.Now()
	happened := false
	switch drill.Next(m.Spec.Drill, m.Status.Drill, now) {
	case drill.Nothing:
		return 0, false, nil
	case drill.Begin:
		if _, err := t.driller(); err != nil {
			return 0, false, t.drillFailed(m.Spec.Drill.Kind, err)
		}
		m.Status.Drill = &v1alpha1.MachineDrillStatus{Kind: m.Spec.Drill.Kind, Began: m.Spec.Drill.Began}
		t.recorder.Eventf(m, nil, corev1.EventTypeWarning, "DrillBegan", "Drill", "drill %s begins, until %s", m.Spec.Drill.Kind, m.Spec.Drill.Ends.UTC().Format(time.RFC3339))
		return catchUp, true, nil // the note comes before the trouble: another process could not end it otherwise
	case drill.Keep:
		if err := t.affect(ctx, drill.Of(*m.Spec.Drill, m.Name)); err != nil {
			return 0, false, err
		}
		return min(drillAgain, m.Spec.Drill.Ends.Sub(now)), false, nil
	case drill.Happen:
		if happened, err = t.happen(ctx, m.Spec.Drill.Kind); err != nil {
			return 0, true, t.drillFailed(m.Spec.Drill.Kind, err)
		}
	case drill.End:
	}
	if err := t.affect(ctx, drill.Effect{}); err != nil {
		return 0, happened, err // the status notes first that it has happened
	}
	m.Status.Drill.EndedAt = new(metav1.NewTime(now.Truncate(time.Second)))
	t.recorder.Eventf(m, nil, corev1.EventTypeNormal, "DrillEnded", "Drill", "drill %s has ended", m.Status.Drill.Kind)
	return catchUp, true, nil
}

// driller is what gives the machine the trouble of a drill.
func (t *turn) driller() (machine.Driller, error) {
	return machine.Ask[machine.Driller](t.Providers, t.m.Spec.Provider, v1alpha1.RunPods)
}

// affect has the machine have what a drill gives it, and nothing else.
func (t *turn) affect(ctx context.Context, effect drill.Effect) error {
	driller, err := t.driller()
	if err == nil && t.instance.ID != "" {
		err = driller.Drill(ctx, t.m.Name, effect)
	}
	if err != nil {
		return t.drillFailed(t.m.Status.Drill.Kind, err)
	}
	return nil
}

// drillFailed says of a drill why it is not as it should be: by an Event, too, since the condition of a machine that is Ready says
// nothing of it.
func (t *turn) drillFailed(kind v1alpha1.DrillKind, err error) error {
	err = fmt.Errorf("drill %s: %w", kind, err)
	t.recorder.Eventf(t.m, nil, corev1.EventTypeWarning, "DrillFailed", "Drill", "%s", readiness.Shorten(err.Error()))
	return t.failed(t.m, "DrillFailed", err)
}

// happen does what a drill announced, and reports whether that is anything. Each can be done again: a machine that is shut down
// is not shut down twice, and boots only when the drill's end is noted.
func (t *turn) happen(ctx context.Context, kind v1alpha1.DrillKind) (happened bool, err error) {
	switch kind {
	case v1alpha1.DrillSpotInterruption:
		return true, t.interrupt(ctx)
	case v1alpha1.DrillMaintenance, v1alpha1.DrillReboot:
		return true, power.Halt(ctx, t.provider, t.m, t.Now())
	case v1alpha1.DrillRebalance, v1alpha1.DrillStop, v1alpha1.DrillDiskFull, v1alpha1.DrillNoNetwork, v1alpha1.DrillKubelet, v1alpha1.DrillContainerd:
	}
	return false, nil
}

// interrupt terminates the machine as an interrupted Spot Instance is: no pod is waited for.
func (t *turn) interrupt(ctx context.Context) error {
	m := t.m.DeepCopy() // without what the status is to say
	before := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationTerminationCause,
		fmt.Sprintf("At %s an instance was taken out of service in response to an EC2 Spot interruption notice.", t.Now().UTC().Format(time.RFC3339)))
	if err := t.management.Patch(ctx, m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting why machine %s is deleted: %w", m.Name, err)
	}
	if err := t.provider.Stop(ctx, m.Name); err != nil {
		return fmt.Errorf("shutting the instance down: %w", err)
	}
	t.instance.State = machine.Stopped
	if err := t.management.Delete(ctx, m, client.Preconditions{UID: &m.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting machine %s: %w", m.Name, err)
	}
	return nil
}
