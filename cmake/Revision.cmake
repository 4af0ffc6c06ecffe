# cmake -DSOURCE=... -DOUTPUT=... -P Revision.cmake: writes the git revision of SOURCE as a string literal, empty where
# there is none (a release's archive). Run again when HEAD's log changes, that is with every commit and checkout.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  RESULT_VARIABLE failed OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
# A clone whose folder belongs to somebody else, or an archive unpacked within another repository.
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel
  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(REAL_PATH ${SOURCE} source)
if(failed OR NOT top STREQUAL source)
  set(revision "")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "\"${revision}\"\n")
