// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/fargate"
	"muster.dev/muster/internal/plane/readiness"
)

// The reasons of Events about the log router, as on EKS.
const (
	reasonLogging   = "LoggingEnabled"
	reasonNoLogging = "LoggingDisabled"
)

// logging reads what the cluster says now about the logs of pods. It returns the sentence that the pod is told, too.
func (r *pods) logging(ctx context.Context) (*v1alpha1.FargateLogging, string, error) {
	namespace, configMap := &corev1.Namespace{}, &corev1.ConfigMap{}
	err := r.API.Get(ctx, client.ObjectKey{Name: fargate.LoggingNamespace}, namespace)
	if apierrors.IsNotFound(err) {
		namespace, err = nil, nil
	}
	if err == nil {
		if err = r.API.Get(ctx, client.ObjectKey{Namespace: fargate.LoggingNamespace, Name: fargate.LoggingName}, configMap); apierrors.IsNotFound(err) {
			configMap, err = nil, nil
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading where the logs of pods go: %w", err)
	}
	logging, told := fargate.Logging(namespace, configMap, r.Region)
	return logging, told, nil
}

// tellLogging says on a pod, once, whether its logs go anywhere.
func (r *pods) tellLogging(pod *corev1.Pod, logging *v1alpha1.FargateLogging, told string) {
	kind, reason := corev1.EventTypeNormal, reasonLogging
	if logging.Disabled != "" {
		kind, reason = corev1.EventTypeWarning, reasonNoLogging
	}
	r.Recorder.Eventf(pod, nil, kind, reason, "Logging", "%s", readiness.Shorten(told))
}

// annotations are those of a pod with a machine. A machine that an earlier Muster made says nothing of logs.
func annotations(m *v1alpha1.Machine, size fargate.Size) map[string]string {
	all := map[string]string{v1alpha1.AnnotationCapacityProvisioned: size.String()}
	if logging := m.Spec.Fargate.Logging; logging != nil {
		all[v1alpha1.AnnotationLogging] = fargate.LoggingAnnotation(logging)
	}
	return all
}
