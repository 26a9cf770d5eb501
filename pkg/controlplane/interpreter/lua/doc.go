// Package lua runs the Lua scripts by which customizations interpret objects.
//
// A script is compiled once, on its first call. Each call runs in an environment
// of its own on a virtual machine from a pool, so that nothing a script leaves
// behind is seen by another call. Scripts reach no file, process or clock but the
// time of day. A call that takes too long or too much memory is stopped.
//
// The memory of a call is counted, not measured: each instruction and each table
// and string is charged the most that it can take. The count depends on nothing
// but the script and its arguments.
package lua
