// SPDX-License-Identifier: Apache-2.0

package logsinsights

// refused are commands of CloudWatch Logs Insights that are not supported, with the reason.
var refused = map[string]string{
	"unmask":         "log events are kept as they are written, and no data protection policy masks them",
	"source":         "name the log groups in the request",
	"filterindex":    "log groups have no field indexes; use filter, which is fast without them",
	"diff":           "query both time ranges and compare the results",
	"anomaly":        "no model is trained on log events; use pattern",
	"join":           "query both log groups in one request and use stats",
	"lookup":         "there are no lookup tables",
	"addtotals":      "use stats",
	"relevantfields": "use stats with count and by",
	"expand":         "use unnest with jsonParse",
}
