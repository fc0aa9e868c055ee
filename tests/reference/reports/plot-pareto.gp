$points << EOD
0.279396772 90 1
0.37252903 60 1
0.74505806 50 0
0.186264515 120 1
0.698491931 70 0
EOD
$front << EOD
0.186264515 120 
0.279396772 90 
0.37252903 60 
EOD
$knee << EOD
NaN NaN
EOD
$fastest << EOD
0.37252903 60 
EOD
$smallest << EOD
0.186264515 120 
EOD
zp_knee = ''
zp_fastest = 'fastest: wrap_blocks=2 ranks=8'
zp_smallest = 'lowest peak: wrap_blocks=1 ranks=16'
zp_time = 'step time (ms)'
zp_title = 'wrapping: peak against step time'
zp_capacity = 0.651925802
zp_capacity_text = 'capacity 0.65 GiB'
zp_top = 0.834465027
# Shared by all plots.
set border 3 lc rgb '#404040'
set tics nomirror out tc rgb '#404040'
set grid ytics lc rgb '#e4e4e4' lw 1
set key outside right top reverse Left samplen 2.6 spacing 1.15 tc rgb '#202020'
set title zp_title font ',20' tc rgb '#101010'
set lmargin 11
set bmargin 4.5
set style fill solid 1.0 noborder
set style textbox opaque noborder margins 0.6, 0.4
# Peak against step time: every point, the front, and the points worth naming.
set xlabel 'peak of a rank (GiB)'
set ylabel zp_time
set grid xtics ytics
set offsets graph 0.04, graph 0.04, graph 0.08, graph 0.04
if (zp_capacity > 0 && zp_capacity <= zp_top) {
    set arrow from zp_capacity, graph 0 to zp_capacity, graph 1 nohead lc rgb '#c00000' lw 2 dt 2
}
plot $points using ($3 == 1 ? $1 : NaN):2 with points pt 7 ps 1 lc rgb '#9a9a9a' title 'fits', \
     $points using ($3 == 0 ? $1 : NaN):2 with points pt 6 ps 1 lc rgb '#9a9a9a' \
         title 'does not fit', \
     $front using 1:2 with steps lw 2 lc rgb '#0072b2' title 'front', \
     $front using 1:2 with points pt 7 ps 1.2 lc rgb '#0072b2' notitle, \
     $fastest using 1:2 with points pt 9 ps 2 lc rgb '#d55e00' title zp_fastest, \
     $smallest using 1:2 with points pt 11 ps 2 lc rgb '#009e73' title zp_smallest, \
     $knee using 1:2 with points pt 13 ps 2.4 lc rgb '#e69f00' \
         title (zp_knee eq '' ? 'no knee' : zp_knee), \
     NaN with lines lc rgb '#c00000' lw 2 dt 2 title (zp_capacity > 0 ? zp_capacity_text : '')
