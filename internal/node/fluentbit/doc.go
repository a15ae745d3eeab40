// SPDX-License-Identifier: Apache-2.0

// Package fluentbit reads the configuration of Fargate's log router, which is a part of Fluent Bit's, and does with records of logs
// what it says. It reads and writes nothing itself.
//
//	ConfigMap aws-logging ──[Read]──> Config: outputs, filters, parsers
//	lines of containers ──> records ──[Config.Run]──> records by output
//
// Configurations are those that EKS takes on Fargate (EKS user guide, "Start AWS Fargate logging for your cluster"): sections
// OUTPUT, FILTER and PARSER, each under its own key, at most 5300 characters, no environment variables, one indentation. Outputs
// are cloudwatch_logs and cloudwatch. A plugin, key or value that is of Fluent Bit and not here is refused by its name, with the
// line that it is in: a filter that is passed over would let lines through that somebody wanted to keep back.
//
// Filters change records as those of Fluent Bit do: a line is {"log": LINE} with the tag kube.var.log.containers.FILE.log, a parser that does
// not match leaves a record alone, and an output writes a record as JSON, its keys in their order.
//
// What happens if
//
//	a regular expression is large               it is refused: a match of it could take long
//	a line is JSON nested without end           it is text
//	rewrite_tag rewrites a tag again and again  a record is emitted again four times at most, and stays as it is then
package fluentbit
