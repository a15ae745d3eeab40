// SPDX-License-Identifier: Apache-2.0

// Package logfunction has the functions of CloudWatch Logs Insights' query language: of numbers, texts, timestamps, JSON and IP
// addresses, and conditions. Names are as in AWS's page "Boolean, comparison, numeric, datetime, and other functions", in any
// case. Aggregate functions are not among them: they belong to the stats command.
//
// A function of a missing field, or of a value that it cannot use, such as sqrt of a text, is Null, except where AWS's page
// says otherwise (isempty, isblank, ispresent, coalesce). concat leaves missing fields out.
//
// Lengths and positions count code points.
package logfunction
