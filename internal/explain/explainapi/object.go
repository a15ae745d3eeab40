// SPDX-License-Identifier: Apache-2.0

package explainapi

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"muster.dev/muster/internal/explain/diagnosis"
)

// explanation is an object of the API. Its report is what "muster explain KIND NAME -o json" prints.
type explanation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Report diagnosis.Report `json:"report"`
}

// explanations are a list of the API.
type explanations struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []explanation `json:"items"`
}

var apiVersion = Group + "/" + Version

// object makes the object of a report.
func object(of resource, report diagnosis.Report) explanation {
	return explanation{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: of.kind},
		ObjectMeta: metav1.ObjectMeta{Name: report.Name},
		Report:     report,
	}
}

// list makes the list of reports.
func list(of resource, reports []diagnosis.Report) explanations {
	all := explanations{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: of.kind + "List"}, Items: []explanation{}}
	for _, report := range reports {
		all.Items = append(all.Items, object(of, report))
	}
	return all
}

// table makes what kubectl prints.
func table(of resource, reports []diagnosis.Report) metav1.Table {
	t := metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "Table"},
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "the name of what is explained"},
			{Name: "Verdict", Type: "string", Description: "Healthy, OnItsWay, Cause, or NotKnown"},
			{Name: "Cause", Type: "string", Description: "identifiers of docs/causes.md"},
			{Name: "Why", Type: "string", Description: "the first cause in a sentence"},
			{Name: "Step", Type: "string", Priority: 1, Description: "what is next on the way to a node"},
		},
		Rows: []metav1.TableRow{},
	}
	for _, report := range reports {
		one := metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: of.kind},
			ObjectMeta: metav1.ObjectMeta{Name: report.Name},
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: cells(report), Object: runtime.RawExtension{Object: &one}})
	}
	return t
}

func cells(report diagnosis.Report) []any {
	var identifiers []string
	why, next := "", ""
	for _, found := range report.Causes {
		identifiers = append(identifiers, string(found.Cause))
	}
	if len(report.Causes) > 0 {
		why = report.Causes[0].Sentence
	} else if len(report.Other) > 0 {
		why = "the cause is not known; the report has the evidence"
	}
	for _, step := range report.Steps {
		if step.State == diagnosis.StepWaiting || step.State == diagnosis.StepFailed {
			next = string(step.Step)
			break
		}
	}
	return []any{report.Name, string(report.Verdict), strings.Join(identifiers, ","), why, next}
}

// seconds is a wait as HTTP has it.
func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }
