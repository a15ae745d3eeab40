// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	columns "muster.dev/muster/internal/table"
)

// The forms in which only objects are printed.
const (
	formatWide = "wide"
	formatName = "name"
)

// addFormatFlag gives a command -o with some of the formats.
func addFormatFlag(cmd *cobra.Command, value *string, initial string, formats ...string) {
	cmd.Flags().StringVarP(value, "output", "o", initial, "how to print: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// checkOutput refuses a format that is not among those.
func checkOutput(format string, formats ...string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	return usageError{Err: fmt.Errorf("unknown output format %q; there are: %s", format, strings.Join(formats, ", "))}
}

// printer prints objects of one kind in one format, now and as they change.
type printer struct {
	out       io.Writer
	scheme    *runtime.Scheme
	kind      kind
	format    string
	noHeaders bool
	follows   bool // objects keep coming, so nobody knows yet which columns have something in them
	now       func() time.Time

	table   *columns.Table
	printed bool
}

// objects prints several as a list, or as rows.
func (p *printer) objects(objects []client.Object) error {
	switch p.format {
	case formatJSON, formatYAML:
		items := make([]any, 0, len(objects))
		for _, object := range objects {
			content, err := toMap(object, p.scheme)
			if err != nil {
				return err
			}
			items = append(items, content)
		}
		return p.document(map[string]any{ // as kubectl prints it
			"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items,
		})
	}
	if p.format == formatName {
		for _, object := range objects {
			if _, err := fmt.Fprintln(p.out, p.kind.qualified(object.GetName())); err != nil {
				return err
			}
		}
		return nil
	}
	return p.rows(objects)
}

// object prints one.
func (p *printer) object(object client.Object) error {
	if p.format != formatJSON && p.format != formatYAML {
		return p.objects([]client.Object{object})
	}
	content, err := toMap(object, p.scheme)
	if err != nil {
		return err
	}
	return p.document(content)
}

// rows prints an object in a line each, under headings before the first.
func (p *printer) rows(objects []client.Object) error {
	rows := make([][]string, len(objects))
	var headings []string
	for _, c := range p.kind.columns {
		if c.wide && p.format != formatWide {
			continue
		}
		cells := make([]string, len(objects))
		for i, object := range objects {
			cells[i] = c.cell(object, p.now())
		}
		if c.ifAny && !p.follows && !slices.ContainsFunc(cells, func(cell string) bool { return cell != "" }) {
			continue
		}
		headings = append(headings, c.heading)
		for i, cell := range cells {
			rows[i] = append(rows[i], cell)
		}
	}
	if p.table == nil {
		if p.noHeaders {
			headings = nil
		}
		p.table = columns.New(p.out, headings...)
	}
	for _, row := range rows {
		p.table.Row(row...)
	}
	return p.table.Flush()
}

func (p *printer) document(content map[string]any) error {
	var out bytes.Buffer
	if p.format == formatJSON {
		encoder := json.NewEncoder(&out)
		encoder.SetIndent("", "    ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(content); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	} else {
		if p.printed {
			out.WriteString("---\n")
		}
		text, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		out.Write(text)
	}
	p.printed = true
	_, err := p.out.Write(out.Bytes())
	return err
}

// toMap is an object with its kind and without what only servers need.
func toMap(object client.Object, scheme *runtime.Scheme) (map[string]any, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, fmt.Errorf("printing: %w", err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("printing: %w", err)
	}
	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	if created := object.GetCreationTimestamp(); created.IsZero() { // it exists nowhere yet, so nothing has been observed of it
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		delete(content, "status")
	}
	return content, nil
}
