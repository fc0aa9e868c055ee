/* The program but its main(). */
#pragma once

/* Runs the command line; prints errors to stderr as "zeropeak COMMAND: ...". */
int zp_program_run(int argc, char **argv);
