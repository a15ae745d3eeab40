// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/node/fluentbit"
)

// The namespace and the name of the ConfigMap that configures log routers, and the label that the namespace needs (EKS user guide,
// "Start AWS Fargate logging for your cluster").
const (
	LoggingNamespace = "aws-observability"
	LoggingName      = "aws-logging"
	loggingLabel     = "aws-observability"
	loggingEnabled   = "enabled"
)

// Why a machine has no log router. The first is EKS's.
const (
	configMapNotFound = "LOGGING_CONFIGMAP_NOT_FOUND"
	configMapInvalid  = "LOGGING_CONFIGMAP_INVALID"
)

// Logging decides about the log router of a machine, by the namespace and the ConfigMap, which are nil if they are not there. Told is
// what is said on the pod. A configuration that is not valid keeps no pod from its machine.
func Logging(namespace *corev1.Namespace, configMap *corev1.ConfigMap, region string) (logging *v1alpha1.FargateLogging, told string) {
	disabled := func(why, format string, args ...any) (*v1alpha1.FargateLogging, string) {
		return &v1alpha1.FargateLogging{Disabled: why}, "Disabled logging because " + fmt.Sprintf(format, args...)
	}
	switch {
	case namespace == nil || configMap == nil:
		return disabled(configMapNotFound, "aws-logging configmap was not found. configmap %q not found", LoggingName)
	case namespace.Labels[loggingLabel] != loggingEnabled:
		return disabled(configMapNotFound, "aws-logging configmap was not found. Namespace %s has no label %s: %s", LoggingNamespace, loggingLabel, loggingEnabled)
	}
	text := fluentbit.TextOf(configMap.Data)
	if _, err := fluentbit.Read(text, region); err != nil {
		return disabled(configMapInvalid, "aws-logging configmap is not valid. %v", err)
	}
	return &v1alpha1.FargateLogging{Output: text.Output, Filters: text.Filters, Parsers: text.Parsers}, "Successfully enabled logging for pod"
}

// LoggingAnnotation is the value of the annotation of a pod.
func LoggingAnnotation(l *v1alpha1.FargateLogging) string {
	if l.Disabled != "" {
		return "LoggingDisabled: " + l.Disabled
	}
	return "LoggingEnabled"
}
