// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLogging(t *testing.T) {
	const output = "[OUTPUT]\n  Name cloudwatch_logs\n  Match *\n  region us-east-1\n  log_group_name g\n  log_stream_prefix p-\n"
	of := func(labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: LoggingNamespace, Labels: labels}}
	}
	enabled := of(map[string]string{"aws-observability": "enabled"})
	config := func(pairs ...string) *corev1.ConfigMap {
		data := map[string]string{"flb_log_cw": "false"}
		for i := 0; i < len(pairs); i += 2 {
			data[pairs[i]] = pairs[i+1]
		}
		return &corev1.ConfigMap{Data: data}
	}
	for name, c := range map[string]struct {
		namespace        *corev1.Namespace
		configMap        *corev1.ConfigMap
		annotation, told string
	}{
		"nothing":         {nil, nil, "LoggingDisabled: LOGGING_CONFIGMAP_NOT_FOUND", `Disabled logging because aws-logging configmap was not found. configmap "aws-logging" not found`},
		"no ConfigMap":    {enabled, nil, "LoggingDisabled: LOGGING_CONFIGMAP_NOT_FOUND", `configmap "aws-logging" not found`},
		"no label":        {of(nil), config("output.conf", output), "LoggingDisabled: LOGGING_CONFIGMAP_NOT_FOUND", "Namespace aws-observability has no label aws-observability: enabled"},
		"another value":   {of(map[string]string{"aws-observability": "true"}), config("output.conf", output), "LoggingDisabled: LOGGING_CONFIGMAP_NOT_FOUND", "has no label"},
		"no output":       {enabled, config(), "LoggingDisabled: LOGGING_CONFIGMAP_INVALID", "Disabled logging because aws-logging configmap is not valid. output.conf has no [OUTPUT]"},
		"a filter":        {enabled, config("output.conf", output, "filters.conf", "[FILTER]\n  Name lua\n  Match *\n"), "LoggingDisabled: LOGGING_CONFIGMAP_INVALID", `filters.conf:1: the filter "lua" is not supported`},
		"a configuration": {enabled, config("output.conf", output, "filters.conf", "# none\n", "parsers.conf", "# none\n"), "LoggingEnabled", "Successfully enabled logging for pod"},
	} {
		t.Run(name, func(t *testing.T) {
			logging, told := Logging(c.namespace, c.configMap, "us-east-1")
			if got := LoggingAnnotation(logging); got != c.annotation || !strings.Contains(told, c.told) {
				t.Errorf("%s, %s", got, told)
			}
			if kept := logging.Output + logging.Filters + logging.Parsers; (kept != "") != (c.annotation == "LoggingEnabled") || kept != "" && kept != output+"# none\n# none\n" {
				t.Errorf("the machine is told %q", kept)
			}
		})
	}
}
